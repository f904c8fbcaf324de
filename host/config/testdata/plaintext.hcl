listen         = ":7422"
metrics_listen = "10.0.0.1:7423"
hostnames      = ["http://x"]
