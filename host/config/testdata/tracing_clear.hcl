tracing {
  endpoint = "http://otel.example.org:4318"
  headers  = { authorization = "the-receivers-own-secret" }
}
