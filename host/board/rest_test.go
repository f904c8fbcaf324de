package board

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/chart"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// rests has a board in a bubble rest, or fails.
func rests(t *testing.T, b *Board) Rest {
	t.Helper()
	synctest.Wait()
	r, ok := b.MayRest(t.Context())
	if !ok {
		t.Fatal("the board does not rest")
	}
	return r
}

// awake fails if a board in a bubble rests.
func awake(t *testing.T, b *Board, why string) {
	t.Helper()
	synctest.Wait()
	if r, ok := b.MayRest(t.Context()); ok {
		t.Fatalf("the board rests as %+v although %s", r, why)
	}
}

// TestRestWithJobs has a board rest on which jobs wait: it says how many, since when, and when
// the next one becomes ready.
func TestRestWithJobs(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		began := time.Now()
		if r := rests(t, b); r.Counts != (Counts{}) || r.Due.After(began.Add(MaxRest)) || r.Due.Before(began.Add(MaxRest/2)) {
			t.Errorf("without jobs it rests as %+v", r)
		}
		first := post(t, b, job.Posting{Name: "ready"}, job.Posting{Name: "later", NotBefore: began.Add(time.Hour)}, job.Posting{Name: "sooner", NotBefore: began.Add(time.Minute)})[0]
		time.Sleep(30 * time.Second)
		post(t, b, job.Posting{Name: "younger"})
		r := rests(t, b)
		if c := r.Counts; c.Ready != 2 || c.Delayed != 2 || !c.OldestReadyAt.Equal(first.CreatedAt) || !r.Due.Equal(began.Add(time.Minute)) {
			t.Errorf("with jobs it rests as %+v", r)
		}
		time.Sleep(time.Minute)
		if r := rests(t, b); r.Counts.Ready != 3 || r.Counts.Delayed != 1 || !r.Due.Equal(began.Add(time.Hour)) {
			t.Errorf("a minute later it rests as %+v", r)
		}
	})
}

// TestRestWithAnInbox has a board that others leave postings for rest while none waits, if it is
// opened for them.
func TestRestWithAnInbox(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		s := &inboxStore{Driver: openStore(t), refused: map[job.ID]string{}}
		awake(t, start(t, s, Spec{}), "nobody opens it for a posting")
	})
	bubble(t, func(t *testing.T) {
		s := &inboxStore{Driver: openStore(t), refused: map[job.ID]string{}}
		b := start(t, s, Spec{Wakes: true})
		rests(t, b)
		s.leave(nil, 1)
		awake(t, b, "a posting waits that it has not heard of")
		s.take(1)
		rests(t, b)
	})
}

// TestRestWithAnOpenBatch has a batch that was told nothing but what follows it be no reason for
// anything.
func TestRestWithAnOpenBatch(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := &tallied{Driver: openStore(t)}
		b := start(t, d, Spec{})
		if _, err := b.PutBatch(t.Context(), "b", &job.Posting{Name: "then"}, 0); err != nil {
			t.Fatal(err)
		}
		post(t, b, job.Posting{Name: "part", Batch: "b"})
		if r := rests(t, b); r.Due.Before(time.Now()) {
			t.Errorf("it rests as %+v", r)
		}
		before := d.tallies.Load()
		time.Sleep(time.Hour)
		if n := d.tallies.Load() - before; n != 0 {
			t.Errorf("the store was asked %d times in an hour how the batch stands", n)
		}
		c := claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		if _, err := b.CloseBatch(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if c := claimOne(t, b, ClaimRequest{Wait: time.Minute}); c.Job.Name != "then" {
			t.Errorf("what follows the batch is %q", c.Job.Name)
		}
	})
}

// tallied counts how often a store is asked how a batch stands.
type tallied struct {
	driver.Driver

	tallies atomic.Int64
}

func (d *tallied) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	for i := range ops {
		if ops[i].Kind == driver.Tally {
			d.tallies.Add(1)
		}
	}
	return d.Driver.Apply(ctx, board, ops)
}

// late tells of changes a second late, so that calls have told of them before.
func late(_ context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		for changes, err := range next {
			time.Sleep(time.Second)
			if !yield(changes, err) {
				return
			}
		}
	}
}

// TestRestoredWithPrerequisites restores a job that waits for another one, while which was in the
// trash something was forgotten of it: that other one ended, or the board was opened anew.
func TestRestoredWithPrerequisites(t *testing.T) {
	t.Parallel()
	for _, anew := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			d := &spy{Driver: openStore(t), t: t, watch: late}
			b := start(t, d, Spec{})
			before := post(t, b, job.Posting{Name: "before"})[0]
			waits := post(t, b, job.Posting{Name: "after", After: []job.Prerequisite{{ID: before.ID}}})[0]
			wantKind(t, one(b.Trash(t.Context(), nil, []job.ID{waits.ID}, "by hand")), job.NoKind)
			end := func() {
				c := claimOne(t, b, ClaimRequest{})
				wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
			}
			if anew {
				b = start(t, d, Spec{})
				synctest.Wait()
			} else {
				end()
			}
			wantKind(t, one(b.Restore(t.Context(), []job.ID{waits.ID})), job.NoKind)
			if anew {
				end()
			}
			if c := claimOne(t, b, ClaimRequest{Wait: time.Minute}); c.ID != waits.ID {
				t.Errorf("claimed is %v", c.ID)
			}
		})
	}
}

// TestRestNotWhileClaimed has a claimed job keep its board open, and the job that went back onto
// the board with a pause be due when that ends.
func TestRestNotWhileClaimed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Retry: Retry{Backoff: time.Hour}})
		postN(t, b, 1)
		claimOne(t, b, ClaimRequest{Lease: time.Minute})
		awake(t, b, "a job is claimed")
		time.Sleep(time.Minute + time.Second)
		if r := rests(t, b); r.Counts.Delayed != 1 || time.Until(r.Due) > time.Hour {
			t.Errorf("after the lease it rests as %+v", r)
		}
	})
}

// TestRestNotWhileAwaited has a call that waits for a job keep its board open.
func TestRestNotWhileAwaited(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		post(t, b, job.Posting{Name: "later", NotBefore: time.Now().Add(time.Hour)})
		for what, call := range map[string]func(context.Context) error{
			"ClaimJobs": func(ctx context.Context) error {
				_, err := b.Claim(ctx, ClaimRequest{Owner: "w", Wait: 30 * time.Second})
				return err
			},
			"Work": func(ctx context.Context) error {
				_, err := b.Work(ctx, WorkRequest{Claims: ClaimRequest{Owner: "w", Max: 1, Wait: 30 * time.Second}})
				return err
			},
		} {
			rests(t, b)
			ended := make(chan error, 1)
			go func() { ended <- call(t.Context()) }()
			awake(t, b, what+" waits")
			if err := <-ended; err != nil {
				t.Errorf("%s: %v", what, err)
			}
			rests(t, b)
		}
	})
}

// TestRestWithPrerequisites has a job rest that waits for another one, which only a caller ends,
// and not before it was looked at whether that has ended.
func TestRestWithPrerequisites(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{})
		before := postN(t, b, 1)[0]
		post(t, b, job.Posting{Name: "after", After: []job.Prerequisite{{ID: before.ID}}})
		if r := rests(t, b); r.Counts.Ready != 1 || r.Counts.Delayed != 1 {
			t.Errorf("it rests as %+v", r)
		}
		b.waiting.again([]job.ID{{1}})
		if !b.waiting.busy() {
			t.Error("a job is to be looked at, and nobody is busy")
		}
		c := claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		if r := rests(t, b); r.Counts.Ready != 1 || r.Counts.Delayed != 0 {
			t.Errorf("after the other one it rests as %+v", r)
		}
	})
}

// TestRestWithBatches has a batch rest that ends with its last job, and one that has ended be
// due when it is forgotten.
func TestRestWithBatches(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Window: MaxRest + time.Hour})
		post(t, b, job.Posting{Name: "one", Batch: "all"})
		if _, err := b.PutBatch(t.Context(), "all", &job.Posting{Name: "then"}, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		rests(t, b)
		c := claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		time.Sleep(time.Minute)
		if r := rests(t, b); r.Counts.Ready != 1 {
			t.Errorf("what follows is not there: %+v", r)
		}
		time.Sleep(BatchKept - time.Hour)
		if r := rests(t, b); time.Until(r.Due) > time.Hour {
			t.Errorf("it rests for %s, and the batch is forgotten within the hour", time.Until(r.Due))
		}
	})
}

// TestRestUntilJobsAreForgotten has a board with ended jobs be opened when its store may forget
// them.
func TestRestUntilJobsAreForgotten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, openStore(t), Spec{Window: time.Minute, History: time.Hour})
		postN(t, b, 1)
		c := claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		if r := rests(t, b); r.Counts.Complete != 1 || time.Until(r.Due) != time.Hour {
			t.Errorf("it rests for %s, want an hour: %+v", time.Until(r.Due), r)
		}
	})
}

// TestSamplesOfRest has the charts of a board that was closed show the jobs that waited there
// meanwhile.
func TestSamplesOfRest(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		now := time.Now()
		b := start(t, openStore(t), Spec{Slept: Slept{Since: now.Add(-30 * time.Minute), Counts: Counts{Ready: 3, Delayed: 2, OldestReadyAt: now.Add(-time.Hour)}}})
		ring, err := b.Samples(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		w := ring.Window(chart.Spans()[0], now)
		waiting, oldest := w.Values(chart.Waiting), w.Values(chart.Oldest)
		if last := len(waiting) - 1; waiting[last] != 3 || waiting[last-29] != 3 || waiting[last-31] != chart.Missing || oldest[last] != 3600 || oldest[last-20] >= oldest[last-10] {
			t.Errorf("waiting %v, oldest %v", waiting, oldest)
		}
	})
}
