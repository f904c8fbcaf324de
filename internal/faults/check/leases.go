package check

import (
	"fmt"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
)

// leases finds claims that were granted while an earlier claim's lease ran. A lease
// counts from no earlier than the call that asked for it.
func leases(h *history.History) (problems []Problem) {
	for id, ops := range byJob(h.Ops) {
		claims, timeout := granted(ops), timeoutOf(ops)
		for _, a := range claims {
			for _, b := range claims {
				if a.Granted == b.Granted || !before(a, b) || endedBy(ops, a, b) {
					continue
				}
				if until := held(ops, a, timeout); b.End < until {
					problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("%s has it from %v for %v at least until %v, and %s was given it at %v",
						a.Owner, a.Begin, a.Lease, until, b.Owner, b.End)})
				}
			}
		}
	}
	return problems
}

// held returns until when a claim stands whatever happens but its end: the soonest that
// any of its leases, each of which may be the last, can be over, or its job's timeout.
func held(ops []history.Op, claim history.Op, timeout time.Duration) time.Duration {
	until := leased(ops, claim)
	if timeout > 0 {
		until = min(until, claim.Begin+timeout*99/100)
	}
	return until
}

func leased(ops []history.Op, claim history.Op) time.Duration {
	until := claim.Begin + claim.Lease*99/100
	var extended []history.Op
	for _, op := range ops {
		if op.Call == history.Extend && op.Token == claim.Granted && (possible(op) || op.Retries) {
			extended = append(extended, op)
			until = min(until, op.Begin+op.Lease*99/100)
		}
	}
	if len(extended) > 0 { // the lease of the claim counts only if no extension came before its end
		if first := extended[0]; first.Outcome == history.Done && first.End < claim.Begin+claim.Lease*99/100 {
			until = first.Begin + first.Lease*99/100
			for _, op := range extended[1:] {
				until = min(until, op.Begin+op.Lease*99/100)
			}
		}
	}
	return until
}

// endedBy reports whether somebody may have ended a claim before another one was
// granted.
func endedBy(ops []history.Op, a, b history.Op) bool {
	_, ok := find(ops, func(op history.Op) bool {
		if !possible(op) || before(op, a) && op.Token != a.Granted || op.Begin > b.End {
			return false
		}
		switch op.Call {
		case history.Abandon, history.Trash, history.Consume:
			return op.Token == a.Granted
		case history.Release, history.Cancel:
			return true
		}
		return false
	})
	return ok
}
