fleet {
  warm = 7
}
