package check

import (
	"fmt"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// Drainer is the client that, at rest, claims one job after another.
const Drainer = "drainer"

// order looks at lists of a board at rest, at the jobs that a lone client then claims,
// and at whether a job's number says when it was posted.
func order(h *history.History) (problems []Problem) {
	jobs := map[string]history.Listed{}
	for _, l := range h.Lists {
		if !l.Final || l.State != job.Unclaimed {
			continue
		}
		for i, j := range l.Jobs {
			jobs[j.Job] = j
			if i > 0 && !first(l.Jobs[i-1], j) {
				problems = append(problems, Problem{Job: j.Job, Text: fmt.Sprintf("%s lists it (priority %d, number %d) after %s (priority %d, number %d)",
					l.Server, j.Priority, j.Sequence, l.Jobs[i-1].Job, l.Jobs[i-1].Priority, l.Jobs[i-1].Sequence)})
			}
		}
	}
	last := map[string]history.Listed{}
	for _, op := range h.Ops {
		if op.Client != Drainer || op.Call != history.Claim || op.Outcome != history.Done || op.Job == "" {
			continue
		}
		j, known := jobs[op.Job]
		if !known {
			continue // it came after the list
		}
		if before, ok := last[op.Board]; ok && !first(before, j) {
			problems = append(problems, Problem{Job: op.Job, Text: fmt.Sprintf("at rest it (priority %d, number %d) is claimed after %s (priority %d, number %d)",
				j.Priority, j.Sequence, before.Job, before.Priority, before.Sequence)})
		}
		last[op.Board] = j
	}
	return append(problems, ages(h)...)
}

func first(a, b history.Listed) bool {
	return a.Priority < b.Priority || a.Priority == b.Priority && a.Sequence < b.Sequence
}

// ages finds two jobs of which the one that was posted first has the larger number.
func ages(h *history.History) (problems []Problem) {
	posted := map[string][]history.Op{} // by board
	for _, ops := range byJob(h.Ops) {
		var calls []history.Op
		again := false
		for _, op := range ops {
			again = again || op.Call == history.Purge && possible(op)
			if op.Call == history.Post && possible(op) {
				calls = append(calls, op)
			}
		}
		if len(calls) == 1 && !again && calls[0].Sequence != 0 {
			posted[calls[0].Board] = append(posted[calls[0].Board], calls[0])
		}
	}
	for _, list := range posted {
		for _, a := range list {
			for _, b := range list {
				if before(a, b) && a.Sequence >= b.Sequence {
					problems = append(problems, Problem{Job: b.Job, Text: fmt.Sprintf("it was posted after %s was, and has the number %d where that has %d", a.Job, b.Sequence, a.Sequence)})
				}
			}
		}
	}
	return problems
}
