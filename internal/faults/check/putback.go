package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// putBack looks at a run whose store was put back to an earlier state. What was
// acknowledged may be gone then, but not in silence.
func putBack(h *history.History) []Problem {
	lost := posts(h)
	for id, ops := range byJob(h.Ops) {
		consumed, ok := find(ops, func(op history.Op) bool { return op.Call == history.Consume && op.Outcome == history.Done })
		shown, open := find(ops, func(op history.Op) bool {
			return op.Call == history.Get && op.Final && op.Outcome == history.Done && op.State != job.Complete
		})
		if ok && open && before(consumed, shown) {
			lost = append(lost, Problem{Job: id, Text: fmt.Sprintf("it was consumed, and in the end it is %v", shown.State)})
		}
	}
	if len(lost) == 0 || h.Reported != "" {
		return nil
	}
	return []Problem{{Checker: "loss reported", Text: fmt.Sprintf("the store lost what was acknowledged, and the board says nothing of it: %v, and %d more", lost[0].Text, len(lost)-1)}}
}
