//go:build !wasip1

package guest

var served *Policy

// Serve makes a policy the one that the module exports. Natively it only keeps it:
// package native runs it.
func Serve(p *Policy) { served = p }

// Served returns what Serve was given last; nil: nothing.
func Served() *Policy { return served }
