# boardd on the board of a service that uses TaskFlow's own jobboard on Redis.
backend "main" {
  driver = "redis"
  config = { address = "127.0.0.1:6379" }
}

tenant "cloud" {
  token "people" {
    roles  = ["worker", "tenant-admin"]
    secret = "a-secret-to-try-things-with"
  }
}

board "octavia" {
  tenant  = "cloud"
  backend = "main"
  config  = { namespace = "octavia_jobboard" }
}
