tls {
  cert_file = "server.pem"
  key_file  = "server.pem"
}
tls {
}
