data_dir = "data"
backend "main" {
  driver = "embedded"
}
tenant "acme" {
}
board "hooks" {
  backend = "main"
}
board "seen" {
  backend = "main"
  mode    = "observe"
}
board "ticking" {
  backend = "main"
  schedule "often" {
    every = "1s"
    job {
      name = "tick"
    }
  }
}
board "others" {
  tenant  = "acme"
  backend = "main"
}
board "jobs" {
  backend = "main"
  webhook "none" {
  }
  webhook "wrong" {
    url            = "http://example.com/"
    secret         = "geheim"
    events         = ["ENDED", "TRASHD"]
    oldest_waiting = "1s"
    networks       = ["10.0.0.1/8", "x"]
    timeout        = "2m"
    deliveries     = "hook"
    headers        = {}
  }
  webhook "inside" {
    url        = "https://[::1]/"
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    events     = []
    deliveries = "jobs"
  }
  webhook "observed" {
    url        = "https://example.com/"
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    deliveries = "seen"
  }
  webhook "observed" {
  }
  webhook "scheduled" {
    url        = "https://example.com/"
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    deliveries = "ticking"
  }
  webhook "foreign" {
    url        = "https://example.com/"
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    deliveries = "others"
  }
}
board "twice" {
  backend = "main"
  webhook "chained" {
    url        = "https://example.com/"
    secret     = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    deliveries = "jobs"
  }
}
