# What a container of the image serves, where nothing else is mounted at /etc/boardd;
# https://github.com/boardd/boardd/blob/main/docs/operating.md has all settings.
listen     = "0.0.0.0:7422" # of the container, which has addresses of its own
data_dir   = "/var/lib/boardd"
plugin_dir = "/usr/lib/boardd/plugins"

# Other containers of its network and the proxy before it speak to it without TLS; a block
# "tls" in its place makes it speak TLS itself.
insecure_plaintext = true

# An operator's token, whose secret has to be mounted: there is none that all containers share.
token "root" {
  roles  = ["operator"]
  secret = file("/run/secrets/boardd-root")
}

backend "local" {
  driver = "embedded"
}

board "default" {
  backend = "local"
}
