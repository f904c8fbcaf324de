package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
)

// apart looks at boards of several tenants: what was posted to one of them is shown on no
// other one, and nobody gets anything done about it there.
func apart(h *history.History) (problems []Problem) {
	home := map[string]string{}
	for _, op := range h.Ops {
		if op.Call == history.Post && possible(op) {
			home[op.Job] = op.Board
		}
	}
	see := func(id, board, where string) {
		if at, posted := home[id]; posted && at != board {
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("it was posted to the board %s, and %s of the board %s shows it", at, where, board)})
		}
	}
	for _, w := range h.Watchers {
		for _, e := range w.Events {
			see(e.Job, w.Board, fmt.Sprintf("an event %v at %v", e.Type, e.Seen))
		}
	}
	for _, l := range h.Lists {
		for _, j := range l.Jobs {
			see(j.Job, l.Board, fmt.Sprintf("a list at %v", l.End))
		}
	}
	for _, op := range h.Ops {
		switch {
		case op.Outcome != history.Done:
		case op.Call == history.Foreign:
			problems = append(problems, Problem{Job: op.Job, Text: fmt.Sprintf("%s, who is on the board %s, was told at %v that its call about it was done (%s)", op.Client, op.Board, op.End, op.Text)})
		case op.Call == history.Claim || op.Call == history.Get:
			see(op.Job, op.Board, fmt.Sprintf("a %s at %v", op.Call, op.End))
		}
	}
	return problems
}
