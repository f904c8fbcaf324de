listne = "127.0.0.1:7422"
data_dirr {
}
boards "a" {
}
board "a" {
  backend = "main"
  leese   = "30s"
  retry {
    max_atempts = 3
  }
  tls {
  }
}
backend "main" {
  driver = "embedded"
  config {
    path = "x"
  }
}
tls = {}
catalog {
  where = "x"
}
