package nemesis

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// serverFaults are those of a server, with the proxies through which it is reached.
func serverFaults(s *testserver.Server, near []*testserver.Proxy, random *rand.Rand) []Fault {
	launch := func() {
		if !s.Running() {
			s.Launch()
		}
	}
	again := func() { s.Kill(); launch() } // whether it has ended or not
	self := func() []int { return []int{s.PID()} }
	started := func() []int { // one that starts ends where it can open nothing, and says so
		if !s.Ready() {
			return nil
		}
		return self()
	}
	small, large := lacks(self, s.Drivers, memory, random)
	return []Fault{
		{"server killed", s, s.Kill, launch},
		{"server ended", s, func() { signal(syscall.SIGTERM, s.PID()) }, again},
		{"server stopped", s, func() { signal(syscall.SIGSTOP, s.PID()) }, func() { signal(syscall.SIGCONT, s.PID()) }},
		slowFault("server", s, self, random),
		descriptorFault("server", s, started, s.Drivers, near, random),
		{"server without memory", s, small, func() { large(); again() }},
	}
}

// childFaults are those of some processes of a server, with the proxies through which they reach
// others. Its drivers are all of them.
func childFaults(what string, s *testserver.Server, processes func() []int, others []*testserver.Proxy, random *rand.Rand) []Fault {
	var stopped []int
	small, large := lacks(processes, none, memory, random)
	return []Fault{
		{what + " killed", s, func() { signal(syscall.SIGKILL, processes()...) }, func() {}},
		{what + " stopped", s, func() {
			stopped = processes()
			signal(syscall.SIGSTOP, stopped...)
		}, func() { signal(syscall.SIGCONT, stopped...) }},
		slowFault(what, s, processes, random),
		descriptorFault(what, s, processes, none, others, random),
		{what + " without memory", s, small, large},
	}
}

func none() []int { return nil }

// signal is refused by a process that has ended.
func signal(s syscall.Signal, pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// moves is for how long a slow process goes on between two times that it stands still.
const moves = 10 * time.Millisecond

// slowFault has processes stand still again and again, so that they do a fifth to a tenth of
// what they could.
func slowFault(what string, on any, processes func() []int, random *rand.Rand) Fault {
	var over chan struct{}
	var turning sync.WaitGroup
	return Fault{what + " slow", on, func() {
		over = make(chan struct{})
		pids, still := processes(), time.Duration(40+random.IntN(51))*time.Millisecond
		turning.Go(func() { byTurns(pids, still, over) })
	}, func() {
		close(over)
		turning.Wait()
	}}
}

// byTurns stops processes and has them go on until it is over. They go on then.
func byTurns(pids []int, still time.Duration, over <-chan struct{}) {
	for ended := false; !ended; {
		signal(syscall.SIGSTOP, pids...)
		ended = isOver(over, still)
		signal(syscall.SIGCONT, pids...)
		ended = ended || isOver(over, moves)
	}
}

// isOver waits until something is over, at most for a while, and reports whether it is.
func isOver(over <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-over:
		return true
	case <-timer.C:
		return false
	}
}

// resource is what processes may have only so much of.
type resource int

const (
	descriptors resource = iota // of files and connections
	memory
)

// nothing is less than no piece to spare: what a process gives back it does not get again either.
const nothing = -1

// lacks has processes get no more of a resource than they have, or one or two pieces more, or, as
// often as not, nothing at all. What they have stays theirs. Heirs are the processes that they
// start, which take the limit over.
func lacks(processes, heirs func() []int, r resource, random *rand.Rand) (begin, end func()) {
	var all []limit
	begin = func() { all = lower(r, processes(), max(nothing, random.IntN(6)-3)) }
	return begin, func() {
		for _, l := range all {
			l.raise(heirs())
		}
	}
}

// descriptorFault has processes open nothing more. Their connections end then, since who has all
// that it needs would not notice.
func descriptorFault(what string, on any, processes, heirs func() []int, through []*testserver.Proxy, random *rand.Rand) Fault {
	less, more := lacks(processes, heirs, descriptors, random)
	return Fault{what + " without file descriptors", on, func() {
		less()
		for _, p := range through {
			p.Reset()
		}
	}, more}
}
