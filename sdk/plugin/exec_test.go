package plugin

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func piped(t testing.TB, s *store) driver.Driver {
	t.Helper()
	d, err := Pipe(context.Background(), programOf(s), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(context.Background(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	return d
}

func id(n int) (id job.ID) {
	id[0], id[1], id[2], id[3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
	id[15] = 1
	return id
}

func TestApplyManyCallers(t *testing.T) {
	t.Parallel()
	var inFlight, most atomic.Int32
	s := newStore(driver.Config{})
	s.apply = func(_ context.Context, board string, ops []driver.Op) []driver.Result {
		if n := inFlight.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer inFlight.Add(-1)
		if board != "b" || len(ops) > maxBatchOps {
			t.Errorf("a batch for board %q with %d ops", board, len(ops))
		}
		results := make([]driver.Result, len(ops))
		for i, op := range ops {
			results[i] = driver.Result{Version: op.Version + 1, Message: op.Reason}
		}
		return results
	}
	d := piped(t, s)
	var callers sync.WaitGroup
	for c := range 200 {
		callers.Go(func() {
			for n := range 20 {
				reason := fmt.Sprint(c, "/", n)
				got := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: id(c), Version: uint64(n), Reason: reason}})
				want := []driver.Result{{Version: uint64(n) + 1, Message: reason}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("caller %d (-want +got):\n%s", c, diff)
				}
			}
		})
	}
	callers.Wait()
	if got := most.Load(); got > defaultInFlight {
		t.Errorf("%d batches were in flight, want at most %d", got, defaultInFlight)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.batches); n >= 4000 {
		t.Errorf("4000 ops of 200 callers took %d batches; nothing was gathered", n)
	}
}

// gate lets a test hold batches back.
type gate struct {
	entered chan []driver.Op
	leave   chan struct{}
}

func gated(s *store) *gate {
	g := &gate{entered: make(chan []driver.Op, 100), leave: make(chan struct{})}
	s.apply = func(ctx context.Context, _ string, ops []driver.Op) []driver.Result {
		g.entered <- ops
		select {
		case <-g.leave:
		case <-ctx.Done():
		}
		return make([]driver.Result, len(ops))
	}
	return g
}

func TestOneOpForAJobAtATime(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	g := gated(s)
	d := piped(t, s)
	done := make(chan []driver.Result, 3)
	claim := driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Count: 1, Candidates: []driver.Candidate{{Job: id(1)}, {Job: id(2)}}}}
	go func() { done <- d.Apply(t.Context(), "b", []driver.Op{claim, {Kind: driver.Update, Job: id(2)}}) }()
	if first := <-g.entered; len(first) != 1 || first[0].Kind != driver.Claim {
		t.Fatalf("the first batch is %v, want the claim alone", first)
	}
	go func() { done <- d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: id(3)}}) }()
	if second := <-g.entered; len(second) != 1 || second[0].Job != id(3) {
		t.Fatalf("the second batch is %v, want the op for another job alone", second)
	}
	close(g.leave)
	if third := <-g.entered; len(third) != 1 || third[0].Job != id(2) {
		t.Fatalf("the third batch is %v, want the op that waited", third)
	}
	for range 2 {
		for _, r := range <-done {
			if r.Kind != job.NoKind {
				t.Errorf("a result is %v", r.Kind)
			}
		}
	}
}

func TestApplyDeadline(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	g := gated(s)
	defer close(g.leave)
	d := piped(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan job.Kind, 3)
	for n := range 2 {
		go func() { results <- d.Apply(ctx, "b", []driver.Op{{Kind: driver.Update, Job: id(n)}})[0].Kind }()
		<-g.entered
	}
	go func() { results <- d.Apply(ctx, "b", []driver.Op{{Kind: driver.Update, Job: id(2)}})[0].Kind }()
	r := d.(*remote)
	waitFor(t, func() bool {
		r.exec.mu.Lock()
		defer r.exec.mu.Unlock()
		return len(r.exec.lanes["b"].pending) == 1
	})
	cancel()
	got := []job.Kind{<-results, <-results, <-results}
	slices.Sort(got)
	if diff := cmp.Diff([]job.Kind{job.OutcomeUnknown, job.OutcomeUnknown, job.Interrupted}, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
	if got := d.Apply(ctx, "b", []driver.Op{{Kind: driver.Update, Job: id(9)}})[0].Kind; got != job.Interrupted {
		t.Errorf("an op after the end of its context is %v, want %v", got, job.Interrupted)
	}
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited 10 s")
		}
	}
}

func TestBatchLimits(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	s.caps.MaxBatch = 10
	d := piped(t, s)
	ops := make([]driver.Op, 95)
	for i := range ops {
		ops[i] = driver.Op{Kind: driver.Update, Job: id(i)}
	}
	big := make([]byte, 2<<20)
	ops[50].Status = &big
	tooBig := make([]byte, MaxMessage)
	ops[70].Status = &tooBig
	for i, r := range d.Apply(t.Context(), "b", ops) {
		if want := map[int]job.Kind{70: job.Invalid}[i]; r.Kind != want {
			t.Errorf("op %d: %v, want %v: %s", i, r.Kind, want, r.Message)
		}
	}
	for _, batch := range s.batches {
		if len(batch) > 10 {
			t.Errorf("a batch has %d ops, and the store asked for 10", len(batch))
		}
		for _, op := range batch {
			if op.Status != nil && len(batch) > 1 {
				t.Errorf("an op of 2 MiB travels with %d others", len(batch)-1)
			}
		}
	}
}

// TestLargeBatches: a board that asks for larger batches than others gets them, up to a bound.
func TestLargeBatches(t *testing.T) {
	t.Parallel()
	for asked, want := range map[int]int{0: defaultBatchOps, 512: 512, 5000: maxBatchOps} {
		s := newStore(driver.Config{})
		s.caps.MaxBatch = asked
		d := piped(t, s)
		ops := make([]driver.Op, 2*maxBatchOps)
		for i := range ops {
			ops[i] = driver.Op{Kind: driver.Update, Job: id(i)}
		}
		d.Apply(t.Context(), "b", ops)
		most := 0
		for _, batch := range s.batches {
			most = max(most, len(batch))
		}
		if most != want {
			t.Errorf("a board that asks for %d gets batches of %d, want %d", asked, most, want)
		}
	}
}

func TestManyBoards(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	s.apply = func(_ context.Context, board string, ops []driver.Op) []driver.Result {
		results := make([]driver.Result, len(ops))
		for i, op := range ops {
			results[i].Message = board + op.Reason
		}
		return results
	}
	d := piped(t, s)
	var callers sync.WaitGroup
	for c := range 100 {
		callers.Go(func() {
			board := fmt.Sprint("board", c%30)
			for n := range 20 {
				if got := d.Apply(t.Context(), board, []driver.Op{{Kind: driver.Update, Job: id(c), Reason: fmt.Sprint(c, n)}})[0]; got.Message != board+fmt.Sprint(c, n) {
					t.Errorf("board %s: %+v", board, got)
				}
			}
		})
	}
	callers.Wait()
}

func TestLargeClaims(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	attached := make([]driver.Attachment, 30)
	for i := range attached {
		attached[i] = driver.Attachment{Name: fmt.Sprint("chunk", i), Data: make([]byte, 1<<20)}
	}
	s.apply = func(_ context.Context, _ string, ops []driver.Op) []driver.Result {
		var r driver.Result
		for _, c := range ops[0].Claim.Candidates {
			r.Claims = append(r.Claims, driver.Claimed{
				Job: c.Job, Token: job.Token{Epoch: 1, Nonce: c.Nonce},
				Record: &driver.Record{Posting: driver.Posting{ID: c.Job, Details: []byte("{}")}, Attached: attached},
			})
		}
		return []driver.Result{r}
	}
	d := piped(t, s)
	claim := driver.ClaimSpec{Count: 3}
	for i := range 3 {
		claim.Candidates = append(claim.Candidates, driver.Candidate{Job: id(i), Nonce: [16]byte{byte(i), math.MaxUint8}})
	}
	got := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Claim, Claim: &claim}})[0]
	if got.Kind != job.NoKind || len(got.Claims) != 3 {
		t.Fatalf("%v %s: %d claims, want 3", got.Kind, got.Message, len(got.Claims))
	}
	for _, c := range got.Claims {
		if !slices.EqualFunc(attached, c.Record.Attached, func(a, b driver.Attachment) bool {
			return a.Name == b.Name && bytes.Equal(a.Data, b.Data)
		}) {
			t.Errorf("attached records are not what was sent")
		}
	}
}

func TestPanicsAndDrain(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	s.apply = func(context.Context, string, []driver.Op) []driver.Result { panic("boom") }
	s.read = func([]job.ID) []driver.Record { panic("bang") }
	s.watch = func() { panic("crash") }
	d := piped(t, s)
	if got := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: id(1)}})[0]; got.Kind != job.OutcomeUnknown {
		t.Errorf("Apply that panicked is %v, want %v", got.Kind, job.OutcomeUnknown)
	}
	if _, err := d.Read(t.Context(), "b", []job.ID{id(1)}, 0); job.KindOf(err) != job.Internal {
		t.Errorf("Read that panicked gives %v, want %v", err, job.Internal)
	}
	var last error
	for _, err := range d.Watch(t.Context(), "b", 0) {
		last = err
	}
	if job.KindOf(last) != job.Internal {
		t.Errorf("Watch that panicked gives %v, want %v", last, job.Internal)
	}
	if err := d.Close(); err != nil || !s.closed {
		t.Errorf("Close: %v; closed is %v", err, s.closed)
	}
	if got := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update, Job: id(1)}})[0]; got.Kind != job.Unavailable {
		t.Errorf("Apply after Close is %v, want %v", got.Kind, job.Unavailable)
	}
}
