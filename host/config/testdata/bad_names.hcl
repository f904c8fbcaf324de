board "UPPER" {
  backend = "main"
}
board "two" "names" {
}
board {
}
board "" {
}
backend "-x" {
}
tenant "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
}
backend "main" {
  driver = "../evil"
}
catalog "x" {
}
