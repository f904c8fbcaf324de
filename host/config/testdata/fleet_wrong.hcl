backend "main" {
  driver = "redis"
  config = { address = "127.0.0.1:6379" }
}
catalog {
  backend = "main"
}
advertise = "boards-1.example.org:7422"
fleet {
  key_file = "missing.key"
  warm     = 0
  publik   = "x"
}
