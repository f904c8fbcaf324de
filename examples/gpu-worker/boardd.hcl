# Jobs say what their worker must have: requires.gpu=a100, or a100|h100, or * for any.
backend "local" {
  driver = "embedded"
}

tenant "lab" {
  token "all" {
    roles  = ["poster", "worker"]
    secret = "a-secret-to-try-things-with"
  }
}

board "training" {
  tenant  = "lab"
  backend = "local"
  eligibility {
    policy = "labels"
    params = { keys = ["gpu"] }
  }
}
