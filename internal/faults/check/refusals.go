package check

import (
	"fmt"
	"slices"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// refusals finds effects of what was refused: a job whose every post was refused, and a
// claim in the name of somebody who was told that he has none. Each call that claims
// has an owner of its own.
func refusals(h *history.History) (problems []Problem) {
	seen := sightings(h)
	jobs := byJob(h.Ops)
	for id, ops := range jobs {
		refused, ok := find(ops, func(op history.Op) bool { return op.Call == history.Post && op.Outcome == history.Refused })
		_, other := find(ops, func(op history.Op) bool { return op.Call == history.Post && possible(op) })
		if where, visible := seen.jobs[id]; ok && !other && visible {
			problems = append(problems, Problem{Job: id, Text: fmt.Sprintf("its post was refused (%v), and %s shows it", refused.Kind, where)})
		}
	}
	claims := map[string][]history.Op{}
	for _, op := range h.Ops {
		if op.Call == history.Claim {
			claims[op.Owner] = append(claims[op.Owner], op)
		}
	}
	for key, where := range seen.owners {
		calls := claims[key.owner]
		if len(calls) == 0 {
			if !h.Shared {
				problems = append(problems, Problem{Job: key.job, Text: fmt.Sprintf("%s shows it claimed by %q, who never asked", where, key.owner)})
			}
			continue
		}
		had := slices.ContainsFunc(calls, func(op history.Op) bool {
			return op.Outcome == history.Unknown && (op.Job == "" || op.Job == key.job) || op.Outcome == history.Done && op.Job == key.job
		})
		if !had && !lapsedUntold(h, key, calls) {
			problems = append(problems, Problem{Job: key.job, Text: fmt.Sprintf("%s shows it claimed by %q, whose call was answered without it at %v", where, key.owner, calls[0].End)})
		}
	}
	return problems
}

// lapsedUntold reports whether the claim of a job that a call's answer lacks had ended before the
// call was answered: the job had gone to somebody else, or its lease was seen to be over, or it
// was taken from its owner, who knew no token to give it back with. On ZooKeeper each
// claim of a call is a step of its own; where the driver is killed between them, the
// answer to the next try is made of those claims that still stand. Where a call was doubled, one
// try does not know the other.
func lapsedUntold(h *history.History, key ownedJob, calls []history.Op) bool {
	answered := calls[0].End
	if doubled(h, calls[0]) {
		return true
	}
	if h.Store != "zookeeper" {
		return false
	}
	next := slices.ContainsFunc(h.Ops, func(op history.Op) bool {
		return op.Call == history.Claim && op.Job == key.job && op.Outcome == history.Done && op.Owner != key.owner &&
			op.Begin > calls[0].Begin && op.Begin < answered
	})
	return next || slices.ContainsFunc(h.Watchers, func(w history.Watcher) bool {
		return slices.ContainsFunc(w.Events, func(e history.Event) bool {
			return e.Job == key.job && (e.Type == job.Expired || e.Type == job.Abandoned) && e.Seen > calls[0].Begin && e.Seen < answered
		})
	})
}

type ownedJob struct{ job, owner string }

// sighted is where jobs, and who claims them, were seen.
type sighted struct {
	jobs   map[string]string
	owners map[ownedJob]string
}

func (s *sighted) see(id, owner, where string) {
	if id == "" {
		return
	}
	s.jobs[id] = where
	if owner != "" {
		s.owners[ownedJob{id, owner}] = where
	}
}

func sightings(h *history.History) *sighted {
	s := &sighted{map[string]string{}, map[ownedJob]string{}}
	for _, w := range h.Watchers {
		for _, e := range w.Events {
			s.see(e.Job, e.Owner, fmt.Sprintf("an event %v at %d.%d", e.Type, e.Generation, e.Position))
		}
	}
	for _, l := range h.Lists {
		for _, j := range l.Jobs {
			s.see(j.Job, j.Holder, fmt.Sprintf("a list at %v", l.End))
		}
	}
	for _, op := range h.Ops {
		if op.Call != history.Get || op.Outcome != history.Done {
			continue
		}
		where := fmt.Sprintf("a get at %v", op.End)
		s.see(op.Job, op.Holder, where)
		for _, owner := range op.Owners {
			s.see(op.Job, owner, where)
		}
	}
	return s
}
