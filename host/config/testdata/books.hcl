backend "zk" {
  driver  = "zookeeper"
  tenants = ["acme"]
}
backend "local" {
  driver = "embedded"
}
tenant "acme" {
}
board "here" {
  backend = "local"
  books {
    directory = "taskflow"
  }
}
board "there" {
  tenant  = "acme"
  backend = "local"
  books {
    backend = "zk"
  }
}
board "below" {
  tenant  = "acme"
  backend = "local"
  books {
    backend = "zk"
    path    = "/octavia/books"
  }
}
