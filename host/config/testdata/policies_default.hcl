backend "main" {
  driver  = "redis"
  config  = { address = "127.0.0.1:6379" }
  tenants = ["acme"]
}
tenant "acme" {}
board "octavia" {
  tenant  = "acme"
  backend = "main"
  config  = { namespace = "octavia_jobboard" }
  eligibility {
    policy = "labels"
  }
}
