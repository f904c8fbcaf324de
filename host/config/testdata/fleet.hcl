backend "main" {
  driver = "redis"
  config = { address = "127.0.0.1:6379" }
}
catalog {
  backend = "main"
}
advertise = "http://127.0.0.1:7422"
fleet {
  key_file = "secret.txt"
  public   = "https://boards.example.org:7422"
  warm     = 5
}
