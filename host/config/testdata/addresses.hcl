listen         = "localhost"
metrics_listen = "[::1]:99999"
