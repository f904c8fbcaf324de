tracing {
  endpoint     = "otel.example.org:4318"
  sample_ratio = 1.5
  headers      = { "a b" = "c", authorization = 7 }
  ratio        = 1
}
tracing {
  endpoint = "http://otel.example.org:4318"
}
