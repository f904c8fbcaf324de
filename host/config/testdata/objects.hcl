backend "a" {
  driver = "redis"
  config = { db = 1e400 }
}
backend "b" {
  driver = "redis"
  config = { a = 1, a = 2, tls = { ca_file = "x", ca_file = "y" } }
}
backend "c" {
  driver = "redis"
  config = { (1) = 2, "${env("X")}" = 1 }
}
backend "d" {
  driver = "redis"
  config = null
}
