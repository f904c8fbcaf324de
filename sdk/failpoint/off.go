//go:build !failpoints

package failpoint

// Enabled says whether this program has its points.
const Enabled = false

// Hit marks a place where a process may end or wait. The name is a constant.
func Hit(string) {}

// Fail marks a place where a process may end or wait, or an operation fail.
func Fail(string) error { return nil }

// Environment is what a child process is given so that its points are those of this one.
func Environment() []string { return nil }
