catalog {
  backend = "mian"
}
backend "main" {
  driver = "embedded"
}
tenant "acme" {
  limits {
    boards              = 0
    open_jobs           = "many"
    detail_bytes        = "1XB"
    requests_per_second = -1
    board               = 7
  }
  limits {
  }
}
board "a" {
  backend = "main"
  limits {
    boards   = 3
    watchers = 5
  }
}
