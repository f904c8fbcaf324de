package store

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestTransactionHeld has a transaction held open elsewhere, without an autovacuum and the
// statistics that it would gather: no dead row goes, and each statement of a round of posts,
// claims and endings reads about as many pages as before.
func TestTransactionHeld(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{Fast: true, Config: []string{
		"autovacuum=off", "session_preload_libraries=auto_explain", "auto_explain.log_min_duration=0",
		"auto_explain.log_analyze=on", "auto_explain.log_buffers=on", "auto_explain.log_timing=off",
	}})
	d, err := opened(t, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	// What is old is taken away soon, so that this is among what a round does.
	const window = time.Second
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Window: window, MaxTombstones: 1000, MaxFinals: 500}); err != nil {
		t.Fatal(err)
	}
	pages := func(rounds int) map[string]quartiles {
		begun := len(p.Log())
		for range rounds {
			round(t, d)
		}
		return pagesRead(p.Log()[begun:])
	}
	pages(100)
	for since := time.Now(); time.Since(since) < 3*window; { // until as much is taken away as comes, however fast that is here
		pages(10)
	}
	before := pages(30)

	held, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close(context.WithoutCancel(t.Context())) }) // what nobody refers to any more is closed early
	for _, text := range []string{"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM boardd.jobs"} {
		if _, err := held.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	pages(500)
	compared := 0
	for text, after := range pages(30) {
		was, ok := before[text]
		if !ok {
			continue
		}
		compared++
		if after.above(was) {
			t.Errorf("a statement read %v pages, and reads %v behind 500 rounds with a transaction held open: want at most twice as many and three a job: %s", was, after, lastPlan(p.Log(), text))
		}
	}
	if compared < 10 {
		t.Errorf("only %d statements ran both before and after: want at least 10", compared)
	}
}

// round posts 32 jobs, claims them and ends them.
func round(t *testing.T, d driver.Driver) {
	t.Helper()
	posts := postsOf(32)
	spec := driver.ClaimSpec{Owner: "w", Lease: time.Minute, Count: len(posts)}
	for _, op := range posts {
		spec.Candidates = append(spec.Candidates, driver.Candidate{Job: op.Job, Nonce: [16]byte(op.Job)})
	}
	claim := driver.Op{Kind: driver.Claim, Request: [16]byte(posts[0].Job), Claim: &spec}
	var ends []driver.Op
	for _, ops := range [][]driver.Op{posts, {claim}} {
		for _, r := range d.Apply(t.Context(), "b", ops) {
			if r.Kind != job.NoKind {
				t.Fatalf("%v: %s", r.Kind, r.Message)
			}
			for _, c := range r.Claims {
				ends = append(ends, driver.Op{
					Kind: driver.Remove, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token, Event: job.ConsumedEvent,
					Ending: &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, KeepPosting: true},
				})
			}
		}
	}
	if len(ends) != len(posts) {
		t.Fatalf("%d of %d jobs were claimed", len(ends), len(posts))
	}
	for _, r := range d.Apply(t.Context(), "b", ends) {
		if r.Kind != job.NoKind {
			t.Fatalf("%v: %s", r.Kind, r.Message)
		}
	}
}

// lastPlan returns the last plan of a statement in a log.
func lastPlan(log, text string) string {
	_, plan, _ := strings.Cut(log[max(0, strings.LastIndex(log, "Query Text: "+text)):], "Query Text: ")
	plan, _, _ = strings.Cut(plan, "LOG:")
	return plan
}

// quartiles are how many pages the runs of a statement read. One statement does several things,
// such as claims and endings, each of which takes its own number: one quartile alone may be now
// that of the one and now that of the other.
type quartiles [3]int

// above reports whether all of them are more than twice as many and three for each of a round's
// jobs: an index that grows gets another level, which each job goes through.
func (q quartiles) above(before quartiles) bool {
	for i := range q {
		if q[i] <= 2*before[i]+3*32 {
			return false
		}
	}
	return true
}

// pagesRead returns how many pages each statement in a log of plans reads.
func pagesRead(log string) map[string]quartiles {
	buffers := regexp.MustCompile(`Buffers: shared (?:hit=(\d+))?(?: ?read=(\d+))?`)
	all := map[string][]int{}
	for _, plan := range strings.Split(log, "Query Text: ")[1:] {
		read := buffers.FindStringSubmatch(plan) // the first line is of the whole plan
		pages := 0
		for _, n := range read[min(1, len(read)):] {
			number, _ := strconv.Atoi(n) // digits, or nothing
			pages += number
		}
		text, _, _ := strings.Cut(plan, "  (cost=")
		all[text] = append(all[text], pages)
	}
	read := map[string]quartiles{}
	for text, list := range all {
		slices.Sort(list)
		read[text] = quartiles{list[len(list)/4], list[len(list)/2], list[len(list)*3/4]}
	}
	return read
}
