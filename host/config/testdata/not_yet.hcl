catalog {
  backend = "main"
}
backend "main" {
  driver = "embedded"
}
tenant "acme" {
  limits {
    boards = 10
  }
}
board "a" {
  backend = "main"
  lease   = "30s"
  eligibility {
    policy = "labels"
  }
  eligibility {
    policy = "more"
  }
  ordering {
    policy = "acme-order"
  }
}
policy "acme-order" {
  path = "policies/acme-order.wasm"
}
