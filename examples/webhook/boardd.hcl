# What happens on the board builds is told to examples/webhook, which runs beside it. Each
# delivery is a job on the board deliveries.
backend "local" {
  driver = "embedded"
}

token "all" {
  roles  = ["poster", "worker"]
  secret = "a-secret-to-try-things-with"
}

board "builds" {
  backend = "local"
  webhook "example" {
    url        = "http://127.0.0.1:8099/"
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    networks   = ["127.0.0.0/8"]
    deliveries = "deliveries"
  }
}

board "deliveries" {
  backend = "local"
  retry {
    backoff     = "1s"
    max_backoff = "5m"
  }
}
