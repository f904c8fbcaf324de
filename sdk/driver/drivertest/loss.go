package drivertest

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var lossChecks = []check{
	{name: "loss/none", run: lossNone},
	{name: "loss/seen", run: lossSeen},
	{name: "loss/told-again", run: lossToldAgain},
}

// reopen opens the board again with what a host remembers of it.
func (e *env) reopen(memory []byte, seen driver.Position) driver.BoardStatus {
	e.Helper()
	spec := e.suite.spec(e.name)
	spec.Witness, spec.Seen = memory, seen
	status, err := e.driver.OpenBoard(e.Context(), spec)
	if err != nil {
		e.Fatalf("OpenBoard again: %v", err)
	}
	return status
}

// last makes every sort of change and returns the position of the last one.
func (e *env) last() driver.Position {
	e.Helper()
	var last driver.Position
	note := func(r driver.Result) {
		last = max(last, r.Position)
		for _, c := range r.Claims {
			last = max(last, c.Position)
		}
	}
	for _, kind := range []driver.OpKind{driver.Extend, driver.Release, driver.Trash, driver.Remove} {
		p := posting("counted")
		note(e.must(postOp(p)))
		claim := claimOp("w", long, p.ID)
		r := e.must(claim)
		note(r)
		op := byToken(kind, r.Claims[0])
		if kind == driver.Extend {
			op.Lease = long
		}
		note(e.must(op))
		if kind == driver.Trash {
			note(e.must(plain(driver.Purge, p.ID)))
		}
	}
	return last
}

// lossNone checks that a board that has everything that was seen of it reports no
// loss, whatever the last change was.
func lossNone(e *env) {
	memory, generation := e.status.Witness, e.status.Generation
	for range 3 {
		status := e.reopen(memory, e.last())
		if status.Loss != "" || status.Generation != generation {
			e.Fatalf("nothing was lost: loss %q, generation %d; want none and %d", status.Loss, status.Generation, generation)
		}
		memory = status.Witness
	}
}

// lossSeen checks that a board which has not come as far as a host has seen reports
// that, and that no token of before is good any more.
func lossSeen(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	status := e.reopen(e.status.Witness, max(c.Position, e.status.Position)+1000)
	if status.Loss == "" || status.Generation <= e.status.Generation {
		e.Errorf("a thousand changes that were seen are not there: loss %q, generation %d; want one, and more than %d", status.Loss, status.Generation, e.status.Generation)
	}
	e.refused(byToken(driver.Remove, c), job.LeaseLost, "its claim is of an earlier generation")
	again := e.reopen(status.Witness, 0)
	if again.Loss != "" || again.Generation != status.Generation {
		e.Errorf("after a loss was reported: loss %q, generation %d; want none and %d", again.Loss, again.Generation, status.Generation)
	}
}

// lossToldAgain checks that a host to which the report of a loss did not come is told
// again.
func lossToldAgain(e *env) {
	c := e.claim(e.post().ID, "w")
	status := e.reopen(e.status.Witness, max(c.Position, e.status.Position)+1000)
	again := e.reopen(e.status.Witness, 0)
	if again.Loss == "" || again.Generation != status.Generation {
		e.Errorf("the host remembers generation %d, and the board has %d: loss %q, generation %d; want one, and %d",
			e.status.Generation, status.Generation, again.Loss, again.Generation, status.Generation)
	}
}
