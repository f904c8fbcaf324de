# What boardd serves; https://github.com/boardd/boardd/blob/main/docs/operating.md has all settings.
# For callers on other machines it needs a certificate: "From the packages to a server for others" there.
# After a change: boardd config check --config /etc/boardd && systemctl reload boardd
listen     = "127.0.0.1:7422"
data_dir   = "/var/lib/boardd"
plugin_dir = "/usr/lib/boardd/plugins"

# An operator's token, whose secret was made when the package was installed:
#   boardd tenant list --token-file /etc/boardd/root.token
token "root" {
  roles  = ["operator"]
  secret = file("/etc/boardd/root.token")
}

backend "local" {
  driver = "embedded"
}

board "default" {
  backend = "local"
}
