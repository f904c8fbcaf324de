# A server of boardd that only looks at Octavia's jobboard: nothing is ever written to
# the Redis or Valkey that has it. docs/octavia.md says what to change.
listen     = "127.0.0.1:7422"
data_dir   = "/var/lib/boardd"
plugin_dir = "/usr/lib/boardd/plugins"

tenant "default" {
  token "people" { # who reads a board reads its jobs' details, and those of Octavia have keys in them
    roles  = ["viewer"]
    secret = file("/etc/boardd/people.token")
  }
}

token "prometheus" {
  roles  = ["metrics"]
  secret = file("/etc/boardd/prometheus.token")
}

backend "octavia" {
  driver = "redis"
  config = {
    address  = "127.0.0.1:6379"                      # jobboard_backend_hosts, jobboard_backend_port
    username = "boardd"                              # of users.acl
    password = file("/etc/boardd/redis.password")
    db       = 0                                     # jobboard_redis_backend_db
    tls      = { ca_file = "/etc/boardd/redis-ca.pem" } # ssl_ca_certs; without TLS take the line out
  }
}

board "octavia" {
  backend      = "octavia"
  config       = { namespace = "octavia_jobboard" }  # jobboard_backend_namespace
  mode         = "observe"
  hide_details = true
}
