backend "main" {
  driver  = "redis"
  tenants = ["acme", "amce"]
}
backend "main" {
  driver = "redis"
}
backend "mine" {
  driver = "redis"
}
tenant "acme" {
}
tenant "acme" {
}
board "a" {
  backend = "main"
}
board "b" {
  backend = "maim"
  tenant  = "acme"
}
board "b" {
  backend = "main"
  tenant  = "acme"
}
board "c" {
  backend = "mine"
  tenant  = "acne"
}
