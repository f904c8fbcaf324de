package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// stuck finds jobs that were unclaimed when everything had come to rest, and that the
// lone client which then emptied the board did not get.
func stuck(h *history.History) (problems []Problem) {
	consumed, drained := map[string]bool{}, false
	for _, op := range h.Ops {
		if op.Client == Drainer && op.Call == history.Claim {
			drained = true
		}
		if op.Client == Drainer && op.Call == history.Consume && op.Outcome == history.Done {
			consumed[op.Job] = true
		}
	}
	if !drained {
		return nil
	}
	said := map[string]bool{}
	miss := func(id, where string) {
		if !consumed[id] && !said[id] {
			said[id] = true
			problems = append(problems, Problem{Job: id, Text: "at rest it is unclaimed (" + where + "), and nobody can claim and consume it"})
		}
	}
	for _, l := range h.Lists {
		for _, j := range l.Jobs {
			if l.Final && (l.State == job.Unclaimed || l.State == job.Claimed) {
				miss(j.Job, fmt.Sprintf("%s lists it as %v", l.Server, l.State))
			}
		}
	}
	for _, op := range h.Ops {
		if op.Call == history.Get && op.Final && op.Outcome == history.Done && (op.State == job.Unclaimed || op.State == job.Claimed) {
			miss(op.Job, fmt.Sprintf("it shows itself as %v", op.State))
		}
	}
	return problems
}
