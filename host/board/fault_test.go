package board

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// lossy loses answers: every second batch is applied, and its outcome is not
// told.
func lossy() func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
	var calls atomic.Int64
	return func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
		results := next(ctx, ops)
		if calls.Add(1)%2 == 1 {
			for i := range results {
				results[i] = driver.Result{Kind: job.OutcomeUnknown, Message: "the answer was lost"}
			}
		}
		return results
	}
}

// Answers that are lost are asked for again: every call ends as if they had
// come, and the index knows of it.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: openStore(t), t: t, apply: lossy()}
		b := start(t, d, Spec{})
		jobs := postN(t, b, 3)
		if c, _ := b.Count(t.Context()); c.Ready != 3 {
			t.Fatalf("%+v", c)
		}
		claims := claim(t, b, ClaimRequest{Max: 3})
		if len(claims) != 3 {
			t.Fatalf("%d claims", len(claims))
		}
		results, err := b.Extend(t.Context(), []Ref{refOf(b, claims[0])}, time.Hour)
		if err != nil || results[0].Err != nil || results[0].Lease != time.Hour {
			t.Fatal(results, err)
		}
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, claims[0])})), job.NoKind)
		wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(b, claims[1])}, AbandonOptions{})), job.NoKind)
		wantKind(t, one(b.Trash(t.Context(), []Ref{refOf(b, claims[2])}, nil, "")), job.NoKind)
		if c, _ := b.Count(t.Context()); c.Ready != 1 || c.Claimed != 0 || c.Trashed != 1 || c.Complete != 1 {
			t.Fatalf("%+v", c)
		}
		wantKind(t, one(b.Restore(t.Context(), []job.ID{jobs[2].ID})), job.NoKind)
		if c := claim(t, b, ClaimRequest{Max: 3}); len(c) != 2 {
			t.Fatalf("%d claims", len(c))
		}
		if n := b.Metrics().Unknown.Load(); n != 0 {
			t.Fatalf("%d outcomes stayed unknown", n)
		}
	})
}

// A call that waits does not say that there is no job when the store has not said what came of
// its try. One with a request id is given the claim when it is made again.
func TestWaitEndsInDoubt(t *testing.T) {
	t.Parallel()
	for _, request := range []string{"", "again"} {
		bubble(t, func(t *testing.T) {
			d := &spy{Driver: openStore(t), t: t}
			b := start(t, d, Spec{Lease: time.Hour})
			var answers atomic.Bool
			d.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
				results := next(ctx, ops)
				for i := range ops {
					if ops[i].Kind == driver.Claim && !answers.Load() {
						results[i] = driver.Result{Kind: job.OutcomeUnknown, Message: "the answer was lost"}
					}
				}
				return results
			}
			go func() {
				time.Sleep(time.Second) // until the call waits
				postN(t, b, 1)
			}()
			want := ClaimRequest{Owner: "w", Wait: 3 * time.Second, RequestID: request}
			if r, err := b.Claim(t.Context(), want); job.KindOf(err) != job.Unavailable || len(r.Claims) > 0 {
				t.Errorf("%q: %d claims, %v, though one was granted", request, len(r.Claims), err)
			}
			answers.Store(true)
			if r, err := b.Claim(t.Context(), want); err != nil || (len(r.Claims) == 1) != (request != "") {
				t.Errorf("%q, again: %d claims, %v", request, len(r.Claims), err)
			}
		})
	}
}

// A caller that has gone while the store did not answer is given nothing any more: it may have
// been told since by another server that there is nothing. What it was given before stands.
func TestGoneInDoubt(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			d := &spy{Driver: openStore(t), t: t}
			b := start(t, d, Spec{Lease: time.Hour})
			postN(t, b, 1)
			var answers atomic.Bool
			tries := 0
			d.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
				if answers.Load() {
					return next(ctx, ops)
				}
				if tries++; made && tries == 1 {
					next(ctx, ops)
				}
				return []driver.Result{{Kind: job.OutcomeUnknown, Message: "the store is away"}}
			}
			go func() {
				time.Sleep(3 * time.Second)
				answers.Store(true)
			}()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			want := ClaimRequest{Owner: "w", RequestID: "again"}
			_, err := b.Claim(ctx, want)
			wantKind(t, err, job.Interrupted)
			if tries < 3 || !answers.Load() {
				t.Fatalf("the call has ended after %d tries, before the store was back: %v", tries, answers.Load())
			}
			if c, _ := b.Count(t.Context()); (c.Claimed == 1) != made {
				t.Errorf("claimed before the caller had gone: %v; there are %+v", made, c)
			}
			if c := claim(t, b, want); len(c) != 1 {
				t.Errorf("made again, the call is given %d claims", len(c))
			}
		})
	}
}

// A claim with a request id that has not begun in the store when its caller goes does not begin.
func TestGoneBeforeItBegan(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: openStore(t), t: t}
		b := start(t, d, Spec{Lease: time.Hour})
		postN(t, b, 1)
		d.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			select {
			case <-time.After(4 * time.Second): // less than the server goes on for who has gone
				return next(ctx, ops)
			case <-ctx.Done():
				return []driver.Result{driver.Failed(ctx.Err())}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := b.Claim(ctx, ClaimRequest{Owner: "w", RequestID: "again"})
		wantKind(t, err, job.Interrupted)
		time.Sleep(time.Minute)
		if c, _ := b.Count(t.Context()); c.Claimed != 0 {
			t.Errorf("it was made when its caller had gone: %+v", c)
		}
	})
}

// An outcome that stays unknown is reported as such when the call's time is up.
func TestOutcomeStaysUnknown(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: openStore(t), t: t}
		b := start(t, d, Spec{})
		postN(t, b, 2)
		c := claimOne(t, b, ClaimRequest{})
		d.apply = func(_ context.Context, ops []driver.Op, _ func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			results := make([]driver.Result, len(ops))
			for i := range results {
				results[i].Kind = job.OutcomeUnknown
			}
			return results
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		wantKind(t, one(b.Consume(ctx, []Ref{refOf(b, c)})), job.OutcomeUnknown)
		if time.Since(began) != 3*time.Second {
			t.Fatal(time.Since(began))
		}
		results, err := b.Post(ctx, []job.Posting{{Name: "n"}})
		if err != nil {
			t.Fatal(err)
		}
		wantKind(t, results[0].Err, job.OutcomeUnknown)
		d.apply = nil
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		if claims := claim(t, b, ClaimRequest{Max: 5}); len(claims) != 1 {
			t.Fatalf("%d claims", len(claims))
		}
	})
}

// While the store is away calls say so, and afterwards everything goes on.
func TestStoreGoesAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var away atomic.Bool
		cut := make(chan struct{}, 1)
		d := &spy{Driver: openStore(t), t: t}
		d.open = func(_ driver.BoardSpec, status driver.BoardStatus) (driver.BoardStatus, error) {
			if away.Load() {
				return driver.BoardStatus{}, job.Errorf(job.Unavailable, "no route to the store")
			}
			return status, nil
		}
		d.cut = cut
		b := start(t, d, Spec{})
		postN(t, b, 1)
		away.Store(true)
		cut <- struct{}{} // the stream breaks
		synctest.Wait()
		if s := b.Status(); s.Ready || s.Problem == "" {
			t.Fatalf("%+v", s)
		}
		began := time.Now()
		_, err := b.Post(t.Context(), []job.Posting{{Name: "n"}})
		wantKind(t, err, job.Unavailable)
		if time.Since(began) != patience {
			t.Fatal(time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			time.Sleep(30 * time.Second)
			away.Store(false)
		}()
		if err := b.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > 45*time.Second {
			t.Fatalf("ready again after %v", waited)
		}
		claimOne(t, b, ClaimRequest{})
		if d.scans != 1 {
			t.Fatalf("%d scans: it did not go on from where it was", d.scans)
		}
	})
}

// A watch that has lost its place makes the board read everything again, without
// a moment of emptiness, and watchers are told.
func TestResync(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var broken atomic.Bool
		d := &spy{Driver: openStore(t), t: t}
		d.watch = func(_ context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				for c, err := range next {
					if broken.Swap(false) {
						c = driver.Changes{Resync: true, Position: c.Position}
					}
					if !yield(c, err) {
						return
					}
				}
			}
		}
		b, other := start(t, d, Spec{}), start(t, d.Driver, Spec{})
		postN(t, b, 3)
		synctest.Wait()
		_, from, err := b.Events(t.Context(), "", 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		broken.Store(true)
		c := claimOne(t, other, ClaimRequest{})
		wantKind(t, one(other.Consume(t.Context(), []Ref{refOf(other, c)})), job.NoKind)
		synctest.Wait()
		if got := b.index.Count(); got.Ready != 2 || got.Claimed != 0 {
			t.Fatalf("%+v", got)
		}
		if b.Metrics().Loads.Load() != 2 {
			t.Fatalf("%d loads", b.Metrics().Loads.Load())
		}
		if got, _ := drain(t, b, from, 10); got != "CLAIMED job-0 CLAIMED\nCONSUMED job-0 COMPLETE" {
			t.Fatal(got) // the store still knew
		}
	})
}

// A board that changes more while it is read than its store remembers is read
// once all the same.
func TestLoadWhileBusy(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d, few := openStore(t), []byte(`{"events": 10}`)
		a := start(t, d, Spec{Settings: few})
		postN(t, a, 600)
		slow := &spy{Driver: d, t: t, page: func() { time.Sleep(10 * time.Second) }}
		go func() {
			for i := range 100 {
				time.Sleep(100 * time.Millisecond)
				c := claimOne(t, a, ClaimRequest{})
				wantKind(t, one(a.Consume(t.Context(), []Ref{refOf(a, c)})), job.NoKind)
				post(t, a, job.Posting{ID: job.ID{9, byte(i)}, Name: "new"})
			}
		}()
		b := start(t, slow, Spec{Settings: few})
		if slow.scans != 1 || b.Metrics().Loads.Load() != 1 {
			t.Fatalf("%d scans", slow.scans)
		}
		synctest.Wait()
		if got, want := b.index.Count(), a.index.Count(); got != want || got.Ready != 600 {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

// A load that fails is begun again.
func TestLoadFails(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		postN(t, start(t, d, Spec{}), 1000)
		var pages atomic.Int64
		broken := &spy{Driver: d, t: t, cut: make(chan struct{}, 1)}
		broken.page = func() {
			if pages.Add(1) == 2 {
				broken.cut <- struct{}{} // the store goes away in the middle
				time.Sleep(time.Second)
			}
		}
		b := start(t, broken, Spec{})
		if got := b.index.Count(); got.Ready != 1000 || broken.scans != 2 {
			t.Fatalf("%+v after %d scans", got, broken.scans)
		}
	})
}

// A store that was rolled back has another generation: tokens from before end,
// and what is gone is gone from the index.
func TestRollback(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &spy{Driver: nil, t: t}
		first, err := memdriver.Open(t.Context(), driver.Config{})
		if err != nil {
			t.Fatal(err)
		}
		d.set(first)
		b := start(t, d, Spec{})
		postN(t, b, 3)
		old := claimOne(t, b, ClaimRequest{})
		_, from, _ := b.Events(t.Context(), "", 0, 0)
		d.set(openStore(t))
		if err := first.Close(); err != nil { // and everything in it
			t.Fatal(err)
		}
		for b.Status().Generation != 2 || !b.Status().Ready {
			time.Sleep(time.Second)
		}
		if b.Status().Loss == "" {
			t.Fatal("the loss is not reported")
		}
		if c, err := b.Count(t.Context()); err != nil || c.Ready != 0 || c.Claimed != 0 {
			t.Fatalf("%+v %v", c, err)
		}
		if got, _ := drain(t, b, from, 10); got != "RESYNC" {
			t.Fatal(got)
		}
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, old)})), job.NotFound)
		postN(t, b, 1)
		if c := claimOne(t, b, ClaimRequest{}); c.Token.Generation != 2 {
			t.Fatalf("%+v", c.Token)
		}
	})
}

// A claim whose end the store cannot confirm is looked at again.
func TestExpiryWhileAway(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var away atomic.Bool
		d := &spy{Driver: openStore(t), t: t}
		d.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			if !away.Load() {
				return next(ctx, ops)
			}
			results := make([]driver.Result, len(ops))
			for i := range results {
				results[i] = driver.Result{Kind: job.Unavailable, Message: "not now"}
			}
			return results
		}
		b := start(t, d, Spec{})
		id := postN(t, b, 1)[0].ID
		claimOne(t, b, ClaimRequest{Lease: 5 * time.Second})
		away.Store(true)
		time.Sleep(20 * time.Second)
		away.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if e, ok := b.index.Get(id); !ok || e.Claim != nil || e.Attempt != 1 {
			t.Fatalf("%+v", e)
		}
	})
}

// An idle board does nothing at all: no timer, no call.
func TestIdleBoardSleeps(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var calls atomic.Int64
		d := &spy{Driver: openStore(t), t: t, read: func([]job.ID) error { calls.Add(1); return nil }}
		d.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
			calls.Add(1)
			return next(ctx, ops)
		}
		b := start(t, d, Spec{AllowNoExpiry: true})
		postN(t, b, 2)
		claimOne(t, b, ClaimRequest{NoExpiry: true})
		synctest.Wait()
		before := calls.Load()
		time.Sleep(24 * time.Hour)
		if got := calls.Load(); got != before || d.counts != 0 || d.scans != 1 {
			t.Fatalf("%d calls, %d counts, %d scans", got-before, d.counts, d.scans)
		}
	})
}

func TestObserve(t *testing.T) {
	t.Parallel()
	d := openStore(t)
	writer := start(t, d, Spec{})
	jobs := postN(t, writer, 1)
	b := start(t, d, Spec{Observe: true})
	if page, err := b.List(t.Context(), ListRequest{}); err != nil || len(page.Jobs) != 1 {
		t.Fatal(page, err)
	}
	for name, call := range map[string]func() error{
		"post":    func() error { _, err := b.Post(t.Context(), []job.Posting{{Name: "n"}}); return err },
		"claim":   func() error { _, err := b.Claim(t.Context(), ClaimRequest{Owner: "w"}); return err },
		"consume": func() error { _, err := b.Consume(t.Context(), []Ref{{ID: jobs[0].ID, Token: "x"}}); return err },
		"trash":   func() error { _, err := b.Trash(t.Context(), nil, []job.ID{jobs[0].ID}, ""); return err },
		"purge":   func() error { _, err := b.Purge(t.Context(), []job.ID{jobs[0].ID}); return err },
		"pause":   func() error { return b.Pause(t.Context(), "") },
	} {
		if got := job.KindOf(call()); got != job.Precondition {
			t.Errorf("%s: got %v, want FAILED_PRECONDITION", name, got)
		}
	}
}
