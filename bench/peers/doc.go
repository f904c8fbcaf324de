// Package peers measures boardd beside other job queues: each with its own client, at the
// settings that its authors publish for speed, all in one run and by turns, since one
// machine is now faster and now slower. It is a module of its own, so that nobody who
// builds boardd needs theirs. docs/benchmarks.md has the table, `make bench-peers` makes it.
package peers
