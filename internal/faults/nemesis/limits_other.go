//go:build !linux

package nemesis

// limit is none where a process can't be given another one while it runs.
type limit struct{}

// lower does nothing: processes get what they ask for.
func lower(resource, []int, int) []limit { return nil }

func (limit) raise([]int) {}
