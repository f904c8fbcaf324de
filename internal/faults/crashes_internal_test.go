package faults

import (
	"slices"
	"testing"
)

// TestCrashes: a server that crashes is started again, and would be taken for one that was killed.
func TestCrashes(t *testing.T) {
	t.Parallel()
	for line, crash := range map[string]bool{
		"panic: runtime error: index out of range [3] with length 3":                        true,
		"fatal error: concurrent map writes":                                                true,
		`level=ERROR msg="fatal error: all goroutines are asleep - deadlock!" driver=redis`: true,
		`level=ERROR msg="the driver panicked" method=Apply panic=no`:                       true,
		"fatal error: runtime: out of memory":                                               false,
		"fatal error: runtime: cannot allocate memory":                                      false,
		`level=ERROR msg="connections cannot be taken" error="too many open files"`:         false,
	} {
		if got := crashes("one\n" + line + "\ntwo\n"); crash != slices.Equal(got, []string{line}) {
			t.Errorf("of %q the crashes are %q", line, got)
		}
	}
}
