# Both servers have this configuration; docs/operating.md has all settings.
listen     = "0.0.0.0:7422" # of the container
data_dir   = "/var/lib/boardd"
plugin_dir = "/usr/lib/boardd/plugins"
hostnames  = ["boardd-1", "boardd-2"] # as the other services call them

# The ports are published on the loopback of the machine alone. Put a proxy with TLS before
# them, or a block "tls" here, to let others in.
insecure_plaintext = true

token "root" {
  roles  = ["operator"]
  secret = file("/run/secrets/boardd-root")
}

token "prometheus" {
  roles  = ["metrics"]
  secret = file("/run/secrets/boardd-metrics")
}

# Tenants, tokens and boards that are made through the API: both servers have them.
catalog {
  backend = "redis"
}

backend "redis" {
  driver = "redis"
  config = {
    address  = "redis:6379"
    username = "boardd"
    password = file("/run/secrets/redis-password")
  }
}

board "default" {
  backend = "redis"
}
