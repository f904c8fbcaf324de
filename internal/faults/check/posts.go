package check

import (
	"fmt"
	"slices"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// posts looks at each job when everything has come to rest. One whose post was
// acknowledged must be there, unless somebody may have purged it, and as it was posted.
func posts(h *history.History) (problems []Problem) {
	for id, ops := range byJob(h.Ops) {
		posted, ok := find(ops, func(op history.Op) bool { return op.Call == history.Post && op.Outcome == history.Done })
		_, purged := find(ops, func(op history.Op) bool {
			return op.Call == history.Purge && possible(op) || op.Call == history.Consume && op.Outside && possible(op) // which may leave nothing
		})
		for _, op := range ops {
			if op.Call != history.Get || !op.Final {
				continue
			}
			if ok && !purged && op.Outcome == history.Refused && op.Kind == job.NotFound {
				problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("its post by %s was acknowledged at %v, and in the end it is not there", posted.Client, posted.End)})
			}
			if op.Outcome == history.Done && !asPosted(ops, op) {
				problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("in the end it has %q, which nobody posted", op.Shown)})
			}
			if op.Outcome == history.Done && op.State != job.Complete {
				problems = append(problems, comeBack(id, ops, op)...)
			}
		}
	}
	return problems
}

// asPosted reports whether what a job was shown with is what somebody may have posted.
// Of a job that ended nothing is shown.
func asPosted(ops []history.Op, shown history.Op) bool {
	return shown.Shown == "" || slices.ContainsFunc(ops, func(op history.Op) bool {
		return op.Call == history.Post && possible(op) && op.Posting == shown.Shown
	})
}

// comeBack finds a job that was consumed and stands on the board again. A purge
// allows the uuid to be posted once more.
func comeBack(id string, ops []history.Op, shown history.Op) []Problem {
	_, purged := find(ops, func(op history.Op) bool { return op.Call == history.Purge && possible(op) })
	consumed, ok := find(ops, func(op history.Op) bool {
		return op.Call == history.Consume && op.Outcome == history.Done && before(op, shown)
	})
	if !ok || purged {
		return nil
	}
	return []Problem{{Job: id, Text: fmt.Sprintf("%s was told at %v that it is consumed, and in the end it is %v", consumed.Client, consumed.End, shown.State)}}
}
