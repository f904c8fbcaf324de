# Two tenants on one server. Neither can see that the other is there, and a token can
# do what its roles say.
backend "local" {
  driver = "embedded"
}

tenant "acme" {
  limits {
    open_jobs = 2
  }
  token "shop" {
    roles  = ["poster"]
    secret = "a-secret-of-acme's-shop"
  }
  token "workers" {
    roles  = ["worker"]
    secret = "a-secret-of-acme's-workers"
  }
}

tenant "initech" {
  token "all" {
    roles  = ["poster", "worker"]
    secret = "a-secret-of-initech"
  }
}

board "orders" {
  tenant  = "acme"
  backend = "local"
}

board "reports" {
  tenant  = "initech"
  backend = "local"
}
