// Package boardtest runs a board's operations, logs, cancellation, history,
// prerequisites and books on any store. What a board does is written once above
// the driver contract; this suite sees whether it comes out alike on each driver.
package boardtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Harness says how to come by a store.
type Harness struct {
	// Open returns a driver on a store of the test's own; the test closes nothing.
	Open func(t *testing.T) driver.Driver
	// Settings are those of a test's board on it, a JSON object; nil: none.
	Settings func(test string) []byte
	// Rewritten says that details come back with the same values, but not byte for
	// byte.
	Rewritten bool
	// NoReplace says that the driver replaces no jobs.
	NoReplace bool
	// Patience is how long a test waits for what has to come; 0: five minutes, since
	// a busy machine is no defect.
	Patience time.Duration
	// Many is how many keys, and how many jobs of a batch, the tests of many have; 0: 300.
	Many int
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Patience == 0 {
		h.Patience = 5 * time.Minute
	}
	if h.Many == 0 {
		h.Many = 300
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *suite)
	}{
		{"operations", operationsInOrder},
		{"mark", mark},
		{"fencing", fencing},
		{"resume", resume},
		{"errors", failing},
		{"cancel", cancel},
		{"cancel-worker", cancelWorker},
		{"listen", listen},
		{"priority", priority},
		{"log", logging},
		{"log-limits", logLimits},
		{"follow", follow},
		{"history", history},
		{"no-history", noHistory},
		{"archive", archive},
		{"after", after},
		{"after-failed", afterFailed},
		{"after-hosts", afterHosts},
		{"after-restart", afterRestart},
		{"restart", restart},
		{"books", books},
		{"as-it-was", asItWas},
		{"limit-hosts", limitOnHosts},
		{"rate-hosts", rateOnHosts},
		{"rate-goes-on", rateGoesOn},
		{"work", workInOneCall},
		{"work-notices", workNotices},
		{"work-ahead", workAhead},
		{"timeouts", timeouts},
		{"timeouts-ahead", timeoutsAhead},
		{"timeout-limits", timeoutLimits},
		{"unique-keys", uniqueKeys},
		{"unique-window", uniqueWindow},
		{"unique-trash", uniqueTrash},
		{"unique-limits", uniqueLimits},
		{"unique-replace", uniqueReplace},
		{"unique-many", uniqueMany},
		{"batch-counts", batchCounts},
		{"batch-then", batchThen},
		{"batch-restart", batchRestart},
		{"batch-limits", batchLimits},
		{"batch-list", batchList},
		{"batch-many", batchMany},
		{"ended-since", endedSince},
		{"bookmarks", bookmarks},
		{"cursor-ahead", cursorAhead},
		{"samples", samples},
		{"schedule-ticks", scheduleTicks},
		{"schedule-overlap", scheduleOverlap},
		{"schedule-changes", scheduleChanges},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, &suite{T: t, harness: h, driver: h.Open(t)})
		})
	}
}

// suite is one test on one store.
type suite struct {
	*testing.T
	harness Harness
	driver  driver.Driver
}

// host is one host of the board.
type host struct {
	*suite
	*board.Board
	stop func() // and waits
}

// start runs a board on the store until the test ends or stop is called.
func (s *suite) start(spec board.Spec) *host {
	s.Helper()
	spec.Name, spec.Key = "suite", "suite/"+s.Name() // of one store that tests share
	if s.harness.Settings != nil {
		spec.Settings = s.harness.Settings(s.Name())
	}
	spec.Logger = slog.New(slog.DiscardHandler)
	b := board.New(s.driver, spec)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	}
	s.Cleanup(stop)
	if err := b.Ready(s.within()); err != nil {
		s.Fatal(err)
	}
	return &host{s, b, stop}
}

// within is the context of what has to come to an end.
func (s *suite) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.harness.Patience)
	s.Cleanup(cancel)
	return ctx
}

// until waits for something that another goroutine or host does.
func (s *suite) until(what string, ok func() bool) {
	s.Helper()
	ctx := s.within()
	for !ok() {
		select {
		case <-ctx.Done():
			s.Fatalf("in vain: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *suite) kind(err error, want job.Kind) {
	s.Helper()
	if got := job.KindOf(err); got != want {
		s.Fatalf("got %v (%v), want %v", got, err, want)
	}
}

func (h *host) post(p job.Posting) *job.Job {
	h.Helper()
	results, err := h.Post(h.within(), []job.Posting{p})
	if err == nil {
		err = results[0].Err
	}
	h.kind(err, job.NoKind)
	return results[0].Job
}

// steps is a posting of so many operations.
func steps(n int) job.Posting {
	p := job.Posting{Name: "steps"}
	for i := range n {
		p.Operations = append(p.Operations, job.NewOperation{Name: "step", Input: []byte{'0' + byte(i%10)}})
	}
	return p
}

func (h *host) claim(id job.ID) board.Ref {
	h.Helper()
	r, err := h.Claim(h.within(), board.ClaimRequest{Owner: "worker", IDs: []job.ID{id}, Lease: time.Hour})
	h.kind(err, job.NoKind)
	if len(r.Claims) != 1 {
		h.Fatalf("not claimed: %+v", r.Failures)
	}
	return h.ref(&r.Claims[0])
}

func (h *host) ref(c *job.Claim) board.Ref {
	return board.Ref{ID: c.ID, Owner: c.Owner, Token: h.FormatToken(c.ID, c.Token)}
}

func (h *host) get(id job.ID) *job.Job {
	h.Helper()
	results, err := h.Get(h.within(), []job.ID{id}, board.GetOptions{Details: true, Operations: true})
	if err == nil {
		err = results[0].Err
	}
	h.kind(err, job.NoKind)
	return results[0].Job
}

func (h *host) begin(r board.Ref, i int32, s job.OperationStatus) board.OperationResult {
	h.Helper()
	result, err := h.StartOperation(h.within(), board.OperationRequest{Ref: r, Index: i, Status: s})
	h.kind(err, job.NoKind)
	return result
}

func (h *host) finish(r board.Ref, i int32, s job.OperationStatus, result string) board.OperationResult {
	h.Helper()
	got, err := h.FinishOperation(h.within(), board.OperationRequest{Ref: r, Index: i, Status: s, Result: []byte(result)})
	h.kind(err, job.NoKind)
	return got
}

func (h *host) consume(r board.Ref) {
	h.Helper()
	errs, err := h.Consume(h.within(), []board.Ref{r})
	if err == nil {
		err = errs[0]
	}
	h.kind(err, job.NoKind)
}

// one is the error of the only item, or of the call.
func one(errs []error, err error) error {
	if err != nil {
		return err
	}
	return errs[0]
}

// shape writes how the operations of a job stand.
func shape(j *job.Job) string {
	letters := map[job.OperationStatus]byte{
		job.OpQueued: 'q', job.OpWaiting: 'w', job.OpCanceling: 'g', job.OpRunning: 'r', job.OpCanceled: 'c', job.OpSuccess: 's', job.OpError: 'e',
	}
	var text []byte
	for i := range j.Operations {
		text = append(text, letters[j.Operations[i].Status])
	}
	return string(text)
}

func (h *host) shape(id job.ID, want string, status job.OperationStatus) *job.Job {
	h.Helper()
	j := h.get(id)
	if got := shape(j); got != want || j.OperationStatus != status {
		h.Fatalf("the operations are %s and the job %s, want %s and %s", got, j.OperationStatus, want, status)
	}
	return j
}
