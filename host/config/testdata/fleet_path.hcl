backend "main" {
  driver = "redis"
  config = { address = "127.0.0.1:6379" }
}
catalog {
  backend = "main"
}
advertise = "https://boards-1.example.org:7422/boards"
