backend "a" {
  driver    = "embedded"
  tenants   = ["*"]
  placement = 0
}
backend "b" {
  driver    = "embedded"
  config    = { path = "/tmp/b" }
  tenants   = ["*"]
  placement = 10000001
}
backend "c" {
  driver    = "embedded"
  config    = { path = "/tmp/c" }
  placement = 10000000
}
backend "d" {
  driver    = "embedded"
  config    = { path = "/tmp/d" }
  tenants   = ["*"]
  placement = 1
}
