listen             = 7422
hostnames          = "boards.example.org"
insecure_plaintext = "yes"
backend "main" {
  driver  = embedded
  config  = "redis://x"
  tenants = [1]
}
board "a" {
  backend         = null
  lease           = 30
  max_lease       = "1 day"
  allow_no_expiry = 1
  mode            = "observ"
  fencing         = ["token"]
  retry {
    max_attempts = "25"
    backoff      = "0s"
    max_backoff  = "1h"
  }
}
board "b" {
  backend   = ""
  lease     = "50h"
  retry {
    max_attempts = 0.5
    max_backoff  = "1h"
  }
}
board "c" {
  backend   = "main"
  lease     = "1m"
  max_lease = "30s"
  retry {
    max_attempts = -1
    backoff      = "2h"
    max_backoff  = "1h"
  }
}
backend "other" {
  config = { address = 1e400, a = 1, a = 2, tls = { ca_file = x } }
}
