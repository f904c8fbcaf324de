package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

type place struct{ server, board string }

// counts compares, for each server, what it counts at rest with what it lists at rest,
// and both with what each job shows by itself.
func counts(h *history.History) (problems []Problem) {
	listed := map[place]map[job.State]int64{}
	for _, l := range h.Lists {
		if !l.Final {
			continue
		}
		p := place{l.Server, l.Board}
		if listed[p] == nil {
			listed[p] = map[job.State]int64{}
		}
		listed[p][l.State] += int64(len(l.Jobs))
		problems = append(problems, twice(l)...)
	}
	for _, c := range h.Counts {
		list := listed[place{c.Server, c.Board}]
		if !c.Final || list == nil {
			continue
		}
		for state, n := range map[job.State]int64{job.Unclaimed: c.Unclaimed, job.Claimed: c.Claimed, job.Trashed: c.Trashed} {
			if list[state] != n {
				problems = append(problems, Problem{Text: fmt.Sprintf("at rest %s counts %d jobs of board %s as %v and lists %d", c.Server, n, c.Board, state, list[state])})
			}
		}
	}
	return append(problems, unlisted(h)...)
}

// twice finds a job that a list names twice.
func twice(l history.List) (problems []Problem) {
	seen := map[string]bool{}
	for _, j := range l.Jobs {
		if seen[j.Job] {
			problems = append(problems, Problem{Job: j.Job, Text: fmt.Sprintf("%s lists it twice among the jobs that are %v", l.Server, l.State)})
		}
		seen[j.Job] = true
	}
	return problems
}

// unlisted finds jobs that are in another list at rest than they say themselves, on
// any server.
func unlisted(h *history.History) (problems []Problem) {
	states := map[string]job.State{}
	for _, op := range h.Ops {
		if op.Call == history.Get && op.Final && op.Outcome == history.Done {
			states[op.Job] = op.State
		}
	}
	for _, l := range h.Lists {
		if !l.Final {
			continue
		}
		in := map[string]bool{}
		for _, j := range l.Jobs {
			in[j.Job] = true
			if state, known := states[j.Job]; known && state != l.State {
				problems = append(problems, Problem{Job: j.Job, Text: fmt.Sprintf("at rest %s lists it as %v, and it is %v", l.Server, l.State, state)})
			}
		}
		for _, op := range h.Ops {
			if op.Call == history.Get && op.Final && op.Board == l.Board && op.State == l.State && op.Outcome == history.Done && !in[op.Job] {
				problems = append(problems, Problem{Job: op.Job, Text: fmt.Sprintf("at rest it is %v, and %s does not list it so", op.State, l.Server)})
			}
		}
	}
	return problems
}
