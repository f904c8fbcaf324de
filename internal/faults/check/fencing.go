package check

import (
	"cmp"
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
)

// fencing looks at the claims of each job: whoever claims later has the larger number,
// and from then on the tokens before are refused.
func fencing(h *history.History) (problems []Problem) {
	for id, ops := range byJob(h.Ops) {
		claims := granted(ops)
		for i, a := range claims {
			for _, b := range claims[i+1:] {
				problems = append(problems, numbers(id, a, b)...)
			}
			problems = append(problems, stale(id, ops, claims, a)...)
		}
	}
	return problems
}

// granted returns the claims that somebody was given, each once: a repeated request
// gets the same one again.
func granted(ops []history.Op) (claims []history.Op) {
	seen := map[string]bool{}
	for _, op := range ops {
		if op.Call == history.Claim && op.Outcome == history.Done && op.Granted != "" && !seen[op.Granted+op.Owner] {
			seen[op.Granted+op.Owner] = true
			claims = append(claims, op)
		}
	}
	return claims
}

func number(a, b history.Op) int {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Epoch, b.Epoch))
}

func numbers(id string, a, b history.Op) []Problem {
	var text string
	numbered := a.Epoch != 0 && !a.Outside && !b.Outside // TaskFlow's claims have no number
	switch {
	case a.Granted == b.Granted || numbered && number(a, b) == 0:
		text = fmt.Sprintf("%s and %s have the same claim, token %s, number %d.%d", a.Owner, b.Owner, a.Granted, a.Generation, a.Epoch)
	case numbered && before(a, b) && number(a, b) > 0, numbered && before(b, a) && number(a, b) < 0:
		text = fmt.Sprintf("the numbers of claims do not grow: %s has %d.%d from %v to %v, and %s %d.%d from %v to %v",
			a.Owner, a.Generation, a.Epoch, a.Begin, a.End, b.Owner, b.Generation, b.Epoch, b.Begin, b.End)
	default:
		return nil
	}
	return []Problem{{Job: id, Text: text}}
}

// stale finds calls by a claim's token that were accepted although another claim had
// been granted before they began. An ending that may have been made before is only repeated.
func stale(id string, ops, claims []history.Op, a history.Op) (problems []Problem) {
	for _, op := range ops {
		if op.Token != a.Granted || op.Outcome != history.Done {
			continue
		}
		later, ok := find(claims, func(b history.Op) bool {
			return b.Granted != a.Granted && before(a, b) && before(b, op)
		})
		if ok && !endedBefore(ops, op) {
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("%s by the token of %s was accepted at %v, after %s had been given the job at %v", op.Call, a.Owner, op.End, later.Owner, later.End)})
		}
	}
	return problems
}

// endedBefore reports whether a call may be answered as done since the same ending by its token
// was made before.
func endedBefore(ops []history.Op, op history.Op) bool {
	_, before := find(ops, func(o history.Op) bool {
		return o.Call == op.Call && o.Call != history.Extend && o.Token == op.Token && possible(o) && o.From != op.From && o.Begin < op.Begin
	})
	return before
}
