// Package check says which of a board's promises a history breaks. Each checker is a
// function of the history and nothing else, and knows one promise. None of them looks
// at how the board is built.
package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/boardd/boardd/internal/faults/history"
)

// Problem is a promise that was not kept.
type Problem struct {
	Checker string
	Job     string // whose; empty: of the board
	Text    string
}

// String says all of it on one line.
func (p Problem) String() string {
	if p.Job == "" {
		return p.Checker + ": " + p.Text
	}
	return fmt.Sprintf("%s: job %s: %s", p.Checker, p.Job, p.Text)
}

// Checker knows one promise.
type Checker struct {
	Name    string
	Promise string // for the documentation
	Find    func(*history.History) []Problem
}

// All returns every checker.
func All() []Checker {
	return []Checker{
		{"posts", "no acknowledged post is lost, none is changed, and none comes back", posts},
		{"consumption", "at most one worker is told that it has consumed a job", consumption},
		{"fencing", "tokens grow, no two claims have the same, and only the present one is accepted", fencing},
		{"leases", "no claim ends before 0.99 of its lease is over, unless somebody ends it", leases},
		{"timeouts", "no claim stands for longer than its job's timeout, which is told then, and no job is claimed more often than it may be", timeouts},
		{"refusals", "a definite error had no effect", refusals},
		{"watchers", "cursors grow, no watcher has a gap, and every acknowledged change is shown once", watchers},
		{"soon", "within 5 s, and 5 s after the last thing was mended (10 s for a process that was killed or had no memory, 25 s for a store), a job that is ready is offered by every server, and a watcher is shown every change", soon},
		{"repetitions", "a repeated request is answered as it first was", repetitions},
		{"counts", "at rest, what is counted is what is listed, on every server", counts},
		{"order", "at rest, jobs are listed and claimed by the policy in force, then by priority, then by age", order},
		{"policies", "no claim is granted that every policy forbids which can have been in force, and none is refused that all of them allow", policies},
		{"stuck", "at rest, every open job can be claimed and consumed", stuck},
		{"limits", "a limit is never exceeded, and never refuses what is below it", limits},
		{"keys", "no two open jobs have a key, and none is refused that no open job has", keys},
		{"ticks", "each tick of a schedule has one job, which comes once, and it goes on when nothing is broken any more", ticks},
		{"batches", "a batch counts what became of its jobs, and the job that follows it comes once, when none of them is open", batches},
		{"moves", "a move of a board ends when nothing is broken any more", moves},
		{"webhooks", "each event of a job is told its webhooks, signed, until they take it, those of one job in order, and nothing else is told", webhooks},
		{"apart", "what was posted to one tenant's board is shown on no other one, and nothing is done about it there", apart},
		{"linear", "the calls on each job look as if they had come one after the other", Linear},
	}
}

// Run returns everything that a history breaks. Of one whose store was put back to an
// earlier state, only that somebody was told.
func Run(h *history.History) []Problem {
	if h.PutBack {
		return putBack(h)
	}
	var all []Problem
	once := *h
	once.Ops = withJudged(h, settled(h, h.Ops))
	for _, c := range All() {
		judged := &once
		if c.Name == "repetitions" {
			judged = h
		}
		for _, p := range c.Find(judged) {
			p.Checker = c.Name
			all = append(all, p)
		}
	}
	return all
}

// byJob groups the ops on the board of a job that name it, in the order in which they began.
func byJob(ops []history.Op) map[string][]history.Op {
	jobs := map[string][]history.Op{}
	for _, op := range ops {
		if op.Job != "" && op.Call != history.Foreign {
			jobs[op.Job] = append(jobs[op.Job], op)
		}
	}
	for _, list := range jobs {
		slices.SortStableFunc(list, began)
	}
	return jobs
}

func began(a, b history.Op) int {
	return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.From, b.From))
}

// before reports whether an op had ended when another one began.
func before(a, b history.Op) bool {
	if a.To == 0 {
		return a.End < b.Begin
	}
	return a.To < b.From
}

// possible reports whether an op may have taken effect.
func possible(op history.Op) bool { return op.Outcome != history.Refused }

func find(ops []history.Op, is func(history.Op) bool) (history.Op, bool) {
	i := slices.IndexFunc(ops, is)
	if i < 0 {
		return history.Op{}, false
	}
	return ops[i], true
}
