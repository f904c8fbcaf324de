package check

import (
	"slices"

	"github.com/boardd/boardd/internal/faults/history"
)

// touched returns the jobs about which another program may have done something on the
// store itself.
func touched(h *history.History) map[string]bool {
	jobs := map[string]bool{}
	for _, op := range h.Ops {
		if op.Outside && possible(op) {
			jobs[op.Job] = true
		}
	}
	return jobs
}

// certain leaves of the ops on a job that TaskFlow has touched those of which boardd
// promises that they agree with what TaskFlow was told: what was done, and what the job
// shows at rest. What TaskFlow did is shown, and known to refusals, some time later.
func certain(ops []history.Op) []history.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(op history.Op) bool {
		return op.Outcome == history.Refused || op.Call == history.Get && (!op.Final || op.Outcome != history.Done)
	})
}
