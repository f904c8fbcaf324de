server_limits {
  policy_processes    = 0
  policy_memory       = "much"
  policy_compilations = 2000
  simulation          = 1
}
server_limits {
  simulations = 1
}
