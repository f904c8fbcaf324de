listen = "127.0.0.1:7422
board "a" {
