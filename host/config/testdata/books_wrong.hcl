backend "zk" {
  driver  = "zookeeper"
  tenants = ["acme"]
}
tenant "acme" {
}
board "neither" {
  backend = "zk"
  tenant  = "acme"
  books {
  }
}
board "both" {
  backend = "zk"
  tenant  = "acme"
  books {
    directory = "/var/lib/taskflow"
    backend   = "zk"
  }
}
board "path" {
  backend = "zk"
  tenant  = "acme"
  books {
    directory = "/var/lib/taskflow"
    path      = "/taskflow"
  }
}
board "relative" {
  backend = "zk"
  tenant  = "acme"
  books {
    backend = "zk"
    path    = "taskflow/"
  }
}
board "unknown" {
  backend = "zk"
  tenant  = "acme"
  books {
    backend = "zoo"
    folder  = "x"
  }
}
tenant "other" {
}
backend "open" {
  driver = "embedded"
}
board "foreign" {
  backend = "open"
  tenant  = "other"
  books {
    backend = "zk"
  }
}
