tls {
  cert_file = "server.pem"
  key_file  = "server.pem"
}
token "a" {
  roles       = ["viewer"]
  certificate = "ci.example.org"
}
token "b" {
  roles       = ["viewer"]
  certificate = "ci.example.org"
  secret      = "0123456789abcdef"
}
token "c" {
  roles       = ["viewer"]
  certificate = ""
}
