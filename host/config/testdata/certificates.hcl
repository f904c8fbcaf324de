tls {
  cert_file = "missing.pem"
}
