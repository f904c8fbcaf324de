# Customers share the workers by weight: studio pays for three times as much.
backend "local" {
  driver = "embedded"
}

tenant "farm" {
  token "all" {
    roles  = ["poster", "worker"]
    secret = "a-secret-to-try-things-with"
  }
}

board "frames" {
  tenant  = "farm"
  backend = "local"
  ordering {
    policy = "fair-share"
    params = { by = "label:customer", weights = { studio = 3 } }
  }
}
