backend "main" {
  driver = "redis"
  config = { address = "127.0.0.1:6379" }
}
catalog {
  backend = "main"
}
advertise = "http://127.0.0.1:7422"
tls {
  cert_file = "server.pem"
  key_file  = "server.pem"
}
