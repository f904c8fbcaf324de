package drivertest

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var cancelChecks = []check{
	{name: "cancel/before", run: cancelBefore},
	{name: "cancel/during", run: cancelDuring},
	{name: "cancel/reads", run: cancelReads},
}

// agrees checks that a result and the store tell the same of a post.
func (e *env) agrees(r *driver.Result, id job.ID, why string) {
	e.Helper()
	state := e.readParts(id, 0).State
	switch r.Kind {
	case job.OutcomeUnknown:
	case job.NoKind:
		if state != job.Unclaimed {
			e.Errorf("%s: a post was done, and the job is %v", why, state)
		}
	case job.Interrupted, job.Unavailable:
		if state != job.Unknown {
			e.Errorf("%s: a post was %v, which says that nothing changed, and the job is %v", why, r.Kind, state)
		}
	default:
		e.Errorf("%s: a post got %v, want INTERRUPTED or OUTCOME_UNKNOWN, if not done", why, outcome(r))
	}
}

func cancelBefore(e *env) {
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	ops := make([]driver.Op, 5)
	for i := range ops {
		ops[i] = postOp(posting("canceled"))
		ops[i].Request = random16()
	}
	results := e.driver.Apply(ctx, e.name, ops)
	if len(results) != len(ops) {
		e.Fatalf("Apply with a context that had ended: %d results for %d ops", len(results), len(ops))
	}
	e.wait(50 * time.Millisecond) // what was said not to happen must not happen later
	for i := range ops {
		e.agrees(&results[i], ops[i].Posting.ID, "the context had ended before")
	}
	for i, r := range e.apply(ops...) {
		if r.Kind != job.NoKind {
			e.Errorf("item %d, again with a context that lasts: got %v", i, outcome(&r))
		}
	}
}

func cancelDuring(e *env) {
	const callers, each = 16, 8
	results := make([][]driver.Result, callers)
	ops := make([][]driver.Op, callers)
	together(callers, func(i int) {
		ctx, cancel := context.WithTimeout(e.Context(), time.Duration(i)*100*time.Microsecond)
		defer cancel()
		for range each {
			op := postOp(posting("cut short"))
			op.Request = random16()
			ops[i] = append(ops[i], op)
		}
		results[i] = e.driver.Apply(ctx, e.name, ops[i])
	})
	e.wait(50 * time.Millisecond)
	for i := range results {
		if len(results[i]) != each {
			e.Fatalf("Apply whose context ended: %d results for %d ops", len(results[i]), each)
		}
		for n := range results[i] {
			e.agrees(&results[i][n], ops[i][n].Posting.ID, "the context ended meanwhile")
		}
	}
}

func cancelReads(e *env) {
	p := e.post()
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	interrupted := func(err error, what string) {
		e.Helper()
		if err != nil {
			e.wantKind(err, job.Interrupted, what+" with a context that had ended")
		}
	}
	_, err := e.driver.Read(ctx, e.name, []job.ID{p.ID}, 0)
	interrupted(err, "Read")
	_, err = e.driver.Count(ctx, e.name)
	interrupted(err, "Count")
	for _, err := range e.driver.Scan(ctx, e.name, driver.ScanRequest{}) {
		interrupted(err, "Scan")
	}
	for _, err := range e.driver.Watch(ctx, e.name, e.status.Position) {
		interrupted(err, "Watch")
	}
	_, err = e.driver.Documents().List(ctx, e.shelf(), "", 1)
	interrupted(err, "List")
	for _, err := range e.driver.Documents().Watch(ctx, e.shelf()) {
		interrupted(err, "Watch of documents")
	}
	e.state(p.ID, job.Unclaimed, "after calls that were canceled")
}
