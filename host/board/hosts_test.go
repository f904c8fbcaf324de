package board

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Two hosts on one store see what the other does.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		a, b := start(t, d, Spec{}), start(t, d, Spec{})
		go func() {
			time.Sleep(time.Second)
			postN(t, a, 1)
		}()
		began := time.Now()
		c := claimOne(t, b, ClaimRequest{Wait: time.Minute}) // of what the other was given
		if time.Since(began) != time.Second {
			t.Fatal(time.Since(began))
		}
		// A token is good on any host, at once.
		results, err := a.Extend(t.Context(), []Ref{refOf(b, c)}, time.Minute)
		if err != nil || results[0].Err != nil {
			t.Fatal(results, err)
		}
		synctest.Wait()
		wantKind(t, one(a.Consume(t.Context(), []Ref{refOf(b, c)})), job.NoKind)
		synctest.Wait()
		if got := b.index.Count(); got.Claimed != 0 || got.Ready != 0 {
			t.Fatalf("%+v", got)
		}
		// A host that ends leaves its claims to the others.
		ctx, cancel := context.WithCancel(context.Background())
		short := New(d, Spec{Name: "test"})
		ended := make(chan error, 1)
		go func() { ended <- short.Run(ctx) }()
		if err := short.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		id := postN(t, a, 1)[0].ID
		synctest.Wait()
		if c := claimOne(t, short, ClaimRequest{Lease: 10 * time.Second}); c.ID != id {
			t.Fatal(c)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if c := claimOne(t, b, ClaimRequest{Wait: time.Minute}); c.ID != id || c.Attempt != 2 {
			t.Fatalf("%+v", c)
		}
	})
}

// Hosts that share a board give each job to one worker, and none is lost. On one
// host each worker sees them in order as well.
func TestHostsShareTheHead(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			shareTheHead(t, n)
		})
	}
}

func shareTheHead(t *testing.T, n int) {
	t.Helper()
	d := openStore(t)
	hosts := make([]*Board, n)
	for i := range hosts {
		hosts[i] = start(t, d, Spec{})
	}
	const jobs = 3000
	for range jobs / MaxBatch {
		postN(t, hosts[0], MaxBatch)
	}
	var mu sync.Mutex
	seen := make(map[job.ID]int)
	var group sync.WaitGroup
	for w := range 6 {
		group.Go(func() {
			b := hosts[w%len(hosts)]
			last := uint64(0)
			for {
				r, err := b.Claim(t.Context(), ClaimRequest{Owner: fmt.Sprint(w), Max: 7, Wait: 200 * time.Millisecond})
				if err != nil {
					t.Error(err)
					return
				}
				if len(r.Claims) == 0 {
					return
				}
				refs := make([]Ref, len(r.Claims))
				for i, c := range r.Claims {
					refs[i] = refOf(b, c)
					if n == 1 && c.Job.Sequence < last {
						t.Errorf("job %d came after %d", c.Job.Sequence, last)
					}
					last = c.Job.Sequence
				}
				errs, err := b.Consume(t.Context(), refs)
				if err != nil || slices.ContainsFunc(errs, func(e error) bool { return e != nil }) {
					t.Error(errs, err)
					return
				}
				mu.Lock()
				for _, c := range r.Claims {
					seen[c.ID]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	if len(seen) != jobs {
		t.Fatalf("%d of %d jobs were done", len(seen), jobs)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("job %v was given out %d times", id, n)
		}
	}
}

// Everything at once, with short leases: in the end nothing is left over and
// the board keeps to the contract all the time.
func TestHammer(t *testing.T) {
	t.Parallel()
	d := &spy{Driver: openStore(t), t: t, apply: nil}
	b := start(t, d, Spec{Retry: Retry{MaxAttempts: 50}})
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	var group sync.WaitGroup
	for w := range 8 {
		group.Go(func() { hammer(ctx, t, b, w) })
	}
	group.Go(func() {
		for range b.Watch(ctx, "") { //nolint:errcheck // it only has to go on
		}
	})
	group.Wait()
	for { // empty the board
		claims := claim(t, b, ClaimRequest{Max: 100, Wait: 1500 * time.Millisecond}) // longer than any lease that was cut short
		if len(claims) == 0 {
			break
		}
		refs := make([]Ref, len(claims))
		for i, c := range claims {
			refs[i] = refOf(b, c)
		}
		if _, err := b.Consume(t.Context(), refs); err != nil {
			t.Fatal(err)
		}
	}
	page, err := b.List(t.Context(), ListRequest{States: []job.State{job.Unclaimed}})
	if err != nil || len(page.Jobs) != 0 {
		t.Fatal(len(page.Jobs), err)
	}
	c, err := b.Count(t.Context())
	if err != nil || c.Ready != 0 || c.Delayed != 0 {
		t.Fatalf("%+v %v", c, err)
	}
	stored, err := d.Count(t.Context(), "test")
	if err != nil || stored.Open != c.Claimed {
		t.Fatalf("the store has %d open jobs, the index %d", stored.Open, c.Claimed)
	}
}

func hammer(ctx context.Context, t *testing.T, b *Board, w int) {
	t.Helper()
	owner := fmt.Sprint("w", w)
	for i := 0; ctx.Err() == nil; i++ {
		id := job.ID{byte(i % 50), 1}
		if _, err := b.Post(ctx, []job.Posting{{ID: id, Name: "shared"}, {Name: "own"}, {ID: id, Name: "shared"}}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		r, err := b.Claim(ctx, ClaimRequest{Owner: owner, Max: 3, Wait: time.Duration(i%3) * time.Millisecond})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		for k, c := range r.Claims {
			refs := []Ref{refOf(b, c)}
			switch (i + k) % 6 {
			case 0:
				_, err = b.Abandon(ctx, refs, AbandonOptions{})
			case 1:
				_, err = b.Trash(ctx, refs, []job.ID{id}, "x")
			case 2:
				_, err = b.Release(ctx, []job.ID{c.ID}, "", "x")
			case 3:
				_, err = b.Restore(ctx, []job.ID{c.ID, id})
			case 4:
				_, err = b.Extend(ctx, refs, time.Second)
			default:
				_, err = b.Consume(ctx, append(refs, refs...))
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
		if _, err := b.List(ctx, ListRequest{PageSize: 5, Filter: "name = own"}); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
}

// Cancel and the like are asked with the version that the host knows. Of a job that another
// host set aside since, the answer is that it waits no longer, and not that there is none.
func TestChangeOfAJobThatWasSetAside(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Board, context.Context, []job.ID) ([]Change, error){
		"cancel":   func(b *Board, ctx context.Context, ids []job.ID) ([]Change, error) { return b.Cancel(ctx, ids, false) },
		"priority": func(b *Board, ctx context.Context, ids []job.ID) ([]Change, error) { return b.SetPriority(ctx, ids, 1) },
	} {
		bubble(t, func(t *testing.T) {
			d := openStore(t)
			a := start(t, d, Spec{})
			jobs := postN(t, a, 1)
			behind := start(t, deaf(t, d), Spec{})
			errs, err := a.Trash(t.Context(), nil, []job.ID{jobs[0].ID}, "no good")
			if err != nil || errs[0] != nil {
				t.Fatal(errs, err)
			}
			changes, err := change(behind, t.Context(), []job.ID{jobs[0].ID})
			if err != nil || changes[0].Changed || changes[0].Err != nil {
				t.Errorf("%s of a job in the trash: %+v, %v; want no, in words", name, changes, err)
			}
		})
	}
}

// What a host has not heard of yet is no reason to refuse: another one gave the job back.
func TestCancelByAHostThatIsBehind(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		d := openStore(t)
		a := start(t, d, Spec{})
		jobs := postN(t, a, 1)
		claimed := claimOne(t, a, ClaimRequest{})
		behind := start(t, deaf(t, d), Spec{})
		wantKind(t, one(a.Abandon(t.Context(), []Ref{refOf(a, claimed)}, AbandonOptions{})), job.NoKind)
		changes, err := behind.Cancel(t.Context(), []job.ID{jobs[0].ID}, false)
		if err != nil || !changes[0].Changed {
			t.Errorf("the job is free, and canceling it is answered with %+v, %v", changes, err)
		}
	})
}

// deaf is a driver through which a host hears of no change that others make.
func deaf(t *testing.T, d driver.Driver) *spy {
	return &spy{Driver: d, t: t, watch: func(ctx context.Context, _ driver.Position, _ iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error] {
		return func(yield func(driver.Changes, error) bool) {
			<-ctx.Done()
			yield(driver.Changes{}, ctx.Err())
		}
	}}
}
