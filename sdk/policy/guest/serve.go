//go:build !wasip1

package guest

// Serve makes a policy the one that the module exports. Natively it does
// nothing: package native runs the policy there.
func Serve(*Policy) {}
