backend "main" {
  driver = "embedded"
}
board "a" {
  backend = "main"
  eligibility {
    policy = "labels"
  }
  eligibility {
    policy = "labells"
    params = { keys = ["gpu"] }
  }
  eligibility {
    policy   = "aging"
    on_error = "builtin"
  }
  ordering {
    policy = "fair-share"
    params = { by = "team" }
  }
}
board "b" {
  backend = "main"
  eligibility {
    policy = "windows"
    params = { windows = { night = "22:00" }, zone = "Europe/Nowhere" }
  }
  ordering {
    policy = "aging"
    params = { step = "10m", stepp = 3 }
  }
}
board "c" {
  backend = "main"
  eligibility {
    policy = "windows"
    params = { windows = { night = "22:00" } }
  }
  eligibility "x" {
    policy = "labels"
  }
  ordering {
    policy = "labels"
    params = { keys = ["gpu"] }
  }
}
policy "labels" {
  path = "policies/labels.wasm"
}
policy "gone" {
  path = "gone.wasm"
}
policy "text" {
  path = "policies.hcl"
}
policy "empty" {}
policy "digest" {
  path   = "policies.hcl"
  sha256 = "12"
}
policy "other" {
  path   = "secret.txt"
  sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
}
backend "pinned" {
  driver = "mine"
  sha256 = 12
}
trusted_keys = ["secret.txt", "nokey.pub"]
