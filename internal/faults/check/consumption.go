package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
)

// consumption finds jobs that two claims consumed. After a purge the uuid may be
// posted again, and its job consumed again.
func consumption(h *history.History) (problems []Problem) {
	for id, ops := range byJob(h.Ops) {
		if _, purged := find(ops, func(op history.Op) bool { return op.Call == history.Purge && possible(op) }); purged {
			continue
		}
		var first history.Op
		for _, op := range ops {
			if op.Call != history.Consume || op.Outcome != history.Done {
				continue
			}
			switch {
			case first.Token == "":
				first = op
			case first.Token != op.Token:
				problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("%s was told at %v that it has consumed it, and %s at %v by another claim", first.Client, first.End, op.Client, op.End)})
			}
		}
	}
	return problems
}
