package nemesis

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// limit is one of a process, and what it was lowered to.
type limit struct {
	pid, what int
	was, low  uint64
}

// lower has processes get no more of a resource than they have and spare pieces. Of memory there
// is nothing to spare: the first thing that a process asks for is refused, and Go ends it. One
// that has ended has no limit.
func lower(r resource, pids []int, spare int) (all []limit) {
	for _, pid := range pids {
		l := limit{pid: pid, what: unix.RLIMIT_AS, low: uint64(os.Getpagesize())} // less than every process has
		if r == descriptors {
			open := opened(pid)
			if len(open) == 0 {
				continue
			}
			l.what, l.low = unix.RLIMIT_NOFILE, free(open, spare)
		}
		var was unix.Rlimit
		if unix.Prlimit(pid, l.what, nil, &was) != nil || was.Cur <= l.low {
			continue
		}
		l.was = was.Cur
		if unix.Prlimit(pid, l.what, &unix.Rlimit{Cur: l.low, Max: was.Max}, nil) == nil {
			all = append(all, l)
		}
	}
	return all
}

// raise gives a process the limit that it had, and those of others that have taken it over.
func (l limit) raise(heirs []int) {
	for _, pid := range append([]int{l.pid}, heirs...) {
		var now unix.Rlimit
		if unix.Prlimit(pid, l.what, nil, &now) == nil && now.Cur == l.low {
			_ = unix.Prlimit(pid, l.what, &unix.Rlimit{Cur: min(l.was, now.Max), Max: now.Max}, nil) // it may have ended
		}
	}
}

// opened returns a process's file descriptors; none of one that has ended.
func opened(pid int) (all []uint64) {
	entries, _ := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	for _, entry := range entries {
		if n, err := strconv.ParseUint(entry.Name(), 10, 64); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// free returns the number below which so many descriptors are free: a process gets the lowest
// that is, and those at its limit and above are refused.
func free(open []uint64, spare int) uint64 {
	if spare == nothing {
		return 0
	}
	n := uint64(0)
	for ; spare >= 0; n++ {
		if !slices.Contains(open, n) {
			spare--
		}
	}
	return n - 1
}
