listen         = "0.0.0.0:7422"
metrics_listen = "127.0.0.1:7423"
data_dir       = "data"
plugin_dir     = "/usr/lib/boardd/plugins"
hostnames      = ["boards.example.org"]

tls {
  cert_file      = "server.pem"
  key_file       = "server.pem"
  client_ca_file = "server.pem"
}
token "root" {
  roles  = ["operator"]
  secret = env("ROOT_TOKEN")
}
catalog {
}
backend "main" {
  driver  = "redis"
  config  = { address = "127.0.0.1:6379", tls = { server_name = "r" }, db = 3, sentinels = ["a", "b"], on = true, half = 0.5 }
  tenants = ["acme"]
}
backend "local" {
  driver = "embedded"
}
tenant "acme" {
  token "ci" {
    roles  = ["poster", "worker"]
    secret = file("secret.txt")
    boards = ["octavia"]
  }
  token "hashed" {
    roles         = ["viewer"]
    secret_sha256 = "9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08"
  }
}
board "octavia" {
  tenant             = "acme"
  backend            = "main"
  config             = { namespace = "octavia_jobboard" }
  mode               = "observe"
  fencing            = "owner"
  lease              = "45s"
  max_lease          = "12h"
  allow_no_expiry    = true
  idempotency_window = "2h"
  retry {
    max_attempts = 25
    backoff      = "5s"
    max_backoff  = "30m"
  }
}
board "octavia" {
  backend      = "local"
  max_lease    = "10s"
  hide_details = true
}
audit {
  calls     = "all"
  keep      = "2160h"
  max_bytes = "2GiB"
  key_file  = "/etc/boardd/audit.pem"
}
