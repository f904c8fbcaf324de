audit {
  calls     = "everything"
  keep      = "10m"
  max_bytes = "1MiB"
  key       = "audit.pem"
}
audit {
  calls = "all"
}
