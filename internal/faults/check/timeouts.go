package check

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// timeouts looks at the claims of jobs that have a timeout: at the leases that were given,
// at what was accepted by a token when the timeout was over, at how often a job was claimed
// that has a number of attempts, and at the reasons that are told.
func timeouts(h *history.History) (problems []Problem) {
	for id, ops := range byJob(h.Ops) {
		timeout := timeoutOf(ops)
		problems = append(problems, reasons(id, ops, timeout)...)
		if timeout == 0 {
			continue
		}
		claims := granted(ops)
		for _, claim := range claims {
			if claim.Outside {
				continue
			}
			if claim.Given > timeout {
				problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("its timeout is %v, and %s was given it for %v", timeout, claim.Owner, claim.Given)})
			}
			for _, op := range ops {
				if op.Token == claim.Granted && op.Outcome == history.Done {
					problems = append(problems, overstayed(h, id, ops, claim, op, timeout)...)
				}
			}
		}
		if most := attemptsOf(ops); most > 0 && len(claims) > most && counted(ops) {
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("it may be claimed %d times, and was %d times", most, len(claims))})
		}
	}
	return problems
}

// timeoutOf returns for how long one claim of a job may stand, 0 for any time. All postings
// with its uuid have the same.
func timeoutOf(ops []history.Op) time.Duration {
	post, _ := find(ops, func(op history.Op) bool { return op.Call == history.Post })
	return post.Timeout
}

// attemptsOf returns how often a job may be claimed, 0 for as often as is asked.
func attemptsOf(ops []history.Op) int {
	post, _ := find(ops, func(op history.Op) bool { return op.Call == history.Post })
	return post.Attempts
}

// overstayed finds what shows that a claim stood for longer than its job's timeout: a call
// by its token that was accepted then, or one before that gave it a lease beyond. An ending
// that may have been made before is only repeated.
func overstayed(h *history.History, id string, ops []history.Op, claim, op history.Op, timeout time.Duration) []Problem {
	stood := op.Begin - claim.End // at least
	most := timeout*101/100 + anew(h, claim, op, timeout)
	if op.Call == history.Extend && stood > 0 && stood+op.Given > most+least {
		return []Problem{{Job: id, Text: fmt.Sprintf("its timeout is %v, %s had it for %v at least, and was given it for another %v", timeout, claim.Owner, stood, op.Given)}}
	}
	if stood <= most || endedBefore(ops, op) {
		return nil
	}
	return []Problem{{Job: id, Text: fmt.Sprintf("its timeout is %v, and %s by the token of %s was accepted when the claim had stood for %v at least", timeout, op.Call, claim.Owner, stood)}}
}

// reasons looks at what is said at rest of the claims that a job had: which of them the
// job's timeout ended.
func reasons(id string, ops []history.Op, timeout time.Duration) (problems []Problem) {
	shown, ok := find(ops, func(op history.Op) bool { return op.Call == history.Get && op.Final && op.Outcome == history.Done })
	if !ok {
		return nil
	}
	if len(shown.TimedOut) > 0 && timeout == 0 {
		return []Problem{{Job: id, Text: fmt.Sprintf("it has no timeout, and is said to have ended the claim of %s by one", shown.TimedOut[0])}}
	}
	for _, claim := range granted(ops) {
		if timeout > 0 && slices.Contains(shown.Owners, claim.Owner) && !slices.Contains(shown.TimedOut, claim.Owner) && stoodToTheEnd(ops, claim, timeout) {
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("only its timeout can have ended the claim of %s, and it is said that something else did", claim.Owner)})
		}
	}
	return problems
}

// stoodToTheEnd reports whether nothing but its job's timeout can have ended a claim: its
// lease was cut to that, those of its extensions, too, and nobody else may have ended it.
func stoodToTheEnd(ops []history.Op, claim history.Op, timeout time.Duration) bool {
	_, other := find(ops, func(op history.Op) bool {
		switch op.Call {
		case history.Release, history.Cancel, history.Purge:
			return possible(op)
		case history.Consume, history.Abandon, history.Trash:
			return op.Token == claim.Granted && possible(op)
		case history.Extend:
			return op.Token == claim.Granted && (possible(op) || op.Retries) && (op.Given == 0 || op.Given >= op.Lease)
		}
		return op.Outside
	})
	return claim.Given == timeout && !other
}

// least is the shortest lease that a store is asked for.
const least = time.Millisecond

// anew returns how much longer than its timeout a claim may stand. On PostgreSQL leases
// count anew, each for at most the timeout, from the first change that is made after the
// server was started again. On ZooKeeper each server counts, and counts anew what it did not
// see. On a board that moves a timeout does not run while the board is frozen, and a claim that
// comes along has a second at least.
func anew(h *history.History, claim, op history.Op, timeout time.Duration) (more time.Duration) {
	if h.Store == "zookeeper" {
		more = time.Second
	}
	for _, m := range h.Moves {
		if m.Board == claim.Board && m.Begin <= op.End && m.End >= claim.Begin {
			more += job.MinLease + min(m.End, op.End) - max(m.Begin, claim.Begin)
		}
	}
	for _, f := range h.Faults {
		if f.Begin > op.End || f.End < claim.Begin {
			continue
		}
		switch {
		case h.Store == "zookeeper":
			more += timeout
		case strings.HasPrefix(h.Store, "postgres") && recounts(f):
			more += timeout + max(min(firstChange(h, f.End), op.End)-f.Begin, 0)
		}
	}
	return more
}

// recounts reports whether a PostgreSQL counts its leases anew after a fault: it was started again,
// or its standby has taken its place.
func recounts(f history.Fault) bool {
	return f.Name == "store killed" || f.Name == "postgres fails over"
}

// firstChange returns when the first change was over that was begun after a time: the
// longest time there is if there was none.
func firstChange(h *history.History, after time.Duration) time.Duration {
	first := time.Duration(math.MaxInt64)
	for _, op := range h.Ops {
		if op.Begin >= after && op.Call != history.Get && op.Outcome == history.Done {
			first = min(first, op.End)
		}
	}
	return first
}

// counted reports whether each claim of a job surely was one attempt, and nobody put it back
// onto the board.
func counted(ops []history.Op) bool {
	_, refunded := find(ops, func(op history.Op) bool {
		switch op.Call {
		case history.Abandon, history.Release, history.Restore, history.Purge, history.Cancel:
			return possible(op)
		}
		return op.Outside
	})
	return !refunded
}
