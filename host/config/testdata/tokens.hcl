token "a" {
  roles  = ["wroker", "operator"]
  secret = "short-secret"
}
token "a" {
  roles  = []
  secret = "0123456789abcdef"
}
token "b" {
  secret = "0123456789abcdef"
}
token "c" {
  roles         = ["viewer"]
  secret        = "0123456789abcdef2"
  secret_sha256 = "00"
}
token "d" {
  roles         = ["viewer"]
  secret_sha256 = "00"
  boards        = []
}
tenant "acme" {
  token "a" {
    roles  = ["viewer"]
    boards = ["octavai"]
  }
  token "e" {
    roles  = ["viewer"]
    secret = env("NOT_SET")
  }
  token "f" {
    roles  = ["viewer"]
    secret = file("no_such_file")
  }
  token "g" {
    roles  = ["viewer"]
    secret = evn("NOT_SET")
  }
}
backend "main" {
  driver = "embedded"
}
board "octavia" {
  tenant  = "acme"
  backend = "main"
}
