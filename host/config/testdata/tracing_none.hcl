tracing {
  sample_ratio = "all"
  headers      = "x"
}
