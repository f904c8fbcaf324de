package board

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// sparsely leaves out of changes what a watcher has already, as a driver may.
func sparsely(next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		for c, err := range next {
			list := make([]driver.Change, len(c.List))
			for i, change := range c.List {
				if change.Event != job.Posted && change.Event != job.Restored && change.Record != nil {
					rec := *change.Record
					rec.Posting = driver.Posting{ID: rec.Posting.ID}
					change.Record, change.Sparse = &rec, true
				}
				list[i] = change
			}
			c.List = list
			if !yield(c, err) {
				return
			}
		}
	}
}

func TestSparseChanges(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		var reads atomic.Int64
		sparse := func(_ context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return sparsely(next)
		}
		d := openStore(t)
		a := start(t, &spy{Driver: d, t: t, watch: sparse}, Spec{})
		b := start(t, &spy{Driver: d, t: t, watch: sparse, read: func([]job.ID) error { reads.Add(1); return nil }}, Spec{})
		post(t, a, job.Posting{Name: "low", Priority: job.Low, Labels: []job.Label{{Key: "k", Value: "v"}}}, job.Posting{Name: "high", Priority: job.High})
		c := claim(t, a, ClaimRequest{Max: 2, Owner: "me"})
		synctest.Wait()
		if e, ok := b.index.Get(c[1].ID); !ok || e.Claim == nil || e.Claim.Owner != "me" || e.Name != "low" || e.Priority != job.Low || len(e.Labels) != 1 || e.Attempt != 1 {
			t.Fatalf("%+v", e)
		}
		wantKind(t, one(b.Abandon(t.Context(), []Ref{refOf(a, c[1])}, AbandonOptions{})), job.NoKind)
		wantKind(t, one(a.Consume(t.Context(), []Ref{refOf(a, c[0])})), job.NoKind)
		if c := claimOne(t, b, ClaimRequest{}); c.Job.Name != "low" || c.Attempt != 2 {
			t.Fatalf("%+v", c.Job)
		}
		synctest.Wait()
		if reads.Load() != 0 {
			t.Fatalf("%d reads: it knew everything", reads.Load())
		}
		want := strings.TrimSpace(`
POSTED low UNCLAIMED
POSTED high UNCLAIMED
CLAIMED high CLAIMED
CLAIMED low CLAIMED
ABANDONED low UNCLAIMED (abandoned by me)
CONSUMED high COMPLETE
CLAIMED low CLAIMED`)
		for _, host := range []*Board{a, b} {
			if got, _ := drain(t, host, "1.0", 10); got != want {
				t.Fatalf("got\n%s", got)
			}
		}
	})
}

// A sparse change of a job that the host does not know is read.
func TestSparseChangeOfUnknownJob(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		a := start(t, d, Spec{})
		b := start(t, &spy{Driver: d, t: t, watch: func(_ context.Context, _ driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				for c, err := range sparsely(next) {
					var list []driver.Change
					for _, change := range c.List {
						if change.Event != job.Posted { // merged with what came after
							list = append(list, change)
						}
					}
					c.List = list
					if !yield(c, err) {
						return
					}
				}
			}
		}}, Spec{})
		id := postN(t, a, 1)[0].ID
		c := claimOne(t, a, ClaimRequest{Lease: 5 * time.Second})
		synctest.Wait()
		if e, ok := b.index.Get(id); !ok || e.Name != "job-0" || e.Claim == nil || e.Claim.Token != c.Token {
			t.Fatalf("%+v", e)
		}
	})
}

// What another program does to a shared board is followed: its claims are
// nobody's to end by token, and count as an attempt when they run out.
func TestForeignClaim(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		changes := make(chan driver.Change, 10)
		b := start(t, &spy{Driver: d, t: t, watch: func(ctx context.Context, _ driver.Position, _ iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				for {
					select {
					case c := <-changes:
						if !yield(driver.Changes{List: []driver.Change{c}, Position: c.Position}, nil) {
							return
						}
					case <-ctx.Done():
						return
					}
				}
			}
		}}, Spec{})
		rec := &driver.Record{
			Posting: driver.Posting{ID: job.ID{5}, Name: "theirs", CreatedAt: time.Now(), Sequence: 1},
			State:   job.Claimed, Version: 3, Position: 100,
			Holder: &driver.Holder{Owner: "conductor", Foreign: true, Remaining: time.Hour},
		}
		changes <- driver.Change{Event: job.ForeignChange, Job: job.ID{5}, Position: 100, Owner: "conductor", Record: rec}
		synctest.Wait()
		page, err := b.List(t.Context(), ListRequest{})
		if err != nil || len(page.Jobs) != 1 || page.Jobs[0].State != job.Claimed || page.Jobs[0].Owner != "conductor" {
			t.Fatalf("%+v %v", page, err)
		}
		free := *rec
		free.State, free.Holder, free.Position, free.Version = job.Unclaimed, nil, 101, 4
		changes <- driver.Change{Event: job.ForeignChange, Job: job.ID{5}, Position: 101, Record: &free}
		synctest.Wait()
		if got := b.index.Count(); got.Ready != 1 {
			t.Fatalf("%+v", got)
		}
	})
}

// A store that is behind shows a claim with the job as it is by now. The event is about
// the claim that was made then.
func TestClaimShownLate(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, &spy{Driver: openStore(t), t: t, watch: func(ctx context.Context, _ driver.Position, _ iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
			return func(yield func(driver.Changes, error) bool) {
				rec := &driver.Record{
					Posting: driver.Posting{ID: job.ID{5}, Name: "j", CreatedAt: time.Now(), Sequence: 1},
					State:   job.Claimed, Version: 3, Position: 100,
					Holder: &driver.Holder{Owner: "second", Remaining: time.Hour},
				}
				list := []driver.Change{
					{Event: job.ClaimedEvent, Job: job.ID{5}, Position: 98, Owner: "first", Record: rec},
					{Event: job.ClaimedEvent, Job: job.ID{5}, Position: 100, Owner: "second", Record: rec},
				}
				if yield(driver.Changes{List: list, Position: 100}, nil) {
					<-ctx.Done()
				}
			}
		}}, Spec{})
		synctest.Wait()
		events, _, err := b.Events(t.Context(), "1.1", 10, 0)
		if err != nil || len(events) != 2 || events[0].Job.Owner != "first" || events[1].Job.Owner != "second" {
			t.Fatalf("%+v, %v", events, err)
		}
	})
}
