backend "main" {
  driver = "embedded"
  config = { path = "/var/lib/boardd/main" }
}
board "watched" {
  backend = "main"
  mode    = "observe"
  schedule "s" {
    every = "1m"
    job {
      name = "x"
    }
  }
}
board "jobs" {
  backend = "main"
  schedule "nightly" {
    cron     = "61 3 * * *"
    timezone = "Europe/Berlin"
    job {
      name = "report"
    }
  }
  schedule "zone" {
    cron     = "@daily"
    timezone = "Berlin"
    overlap  = "never"
    catch_up = "1s"
    jitter   = "2h"
    catchup  = "1m"
    job {
      name     = "report"
      priority = "urgent"
      labels   = { n = 1 }
      timeout  = "1ms"
      uuid     = "8d6f9b0e-5b1c-4c39-9d2a-0f4a4a1d7f10"
      unique {
        on_conflict = "ignore"
      }
    }
  }
  schedule "zone" {
  }
  schedule {
  }
  schedule "neither" {
    job {
    }
  }
  schedule "both" {
    cron  = "@daily"
    every = "1h"
    job {
      name = "x"
    }
    job {
      name = "y"
    }
  }
  schedule "every" {
    every    = "500ms"
    timezone = "Europe/Berlin"
  }
  schedule "type" {
    cron = 5
    job {
      name    = "x"
      details = "text"
    }
  }
  schedule "text" {
    every = "1h"
    job {
      name   = ""
    }
  }
  schedule "endless" {
    every = "9999999h"
    job {
      name = "x"
      unique {
        key = ""
      }
    }
  }
  schedule "several" {
    cron     = "0 3 * *"
    timezone = "Berlin"
    overlap  = "never"
    job {
      name   = ""
      labels = { "" = "y" }
      unique {
        key = ""
      }
    }
  }
  schedule "label" {
    every = "1h"
    job {
      name   = "x"
      labels = { "" = "y" }
    }
  }
}
