package board

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestFirstNames has the first names be kept of many more than there is room for.
func TestFirstNames(t *testing.T) {
	t.Parallel()
	const all = 20_000
	for _, most := range []int{1, 2, 100} {
		for _, after := range []string{"", "n00500", "n19990"} {
			kept := newFirstNames(after, most)
			for _, i := range rand.Perm(2 * all) {
				kept.add(fmt.Appendf(nil, "n%05d", i%all))
				if len(kept.names) > 2*most+1024 {
					t.Fatalf("%d names are kept for %d", len(kept.names), most)
				}
			}
			var want []string
			for i := range all {
				if name := fmt.Sprintf("n%05d", i); name > after && len(want) < most {
					want = append(want, name)
				}
			}
			if got := kept.sorted(); !slices.Equal(got, want) {
				t.Errorf("the first %d after %q are %q, want %q", most, after, got, want)
			}
		}
	}
}

// batchless is a driver that counts no groups.
type batchless struct{ driver.Driver }

// OpenBoard opens a board and says so.
func (d batchless) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := d.Driver.OpenBoard(ctx, spec)
	status.Capabilities.Groups = false
	return status, err
}

// TestBatchesOfADriverWithout: each call about a batch says that there are none, and what to do.
func TestBatchesOfADriverWithout(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		b := start(t, batchless{openStore(t)}, Spec{})
		results, err := b.Post(t.Context(), []job.Posting{{Name: "part", Batch: "b"}, {Name: "of none"}})
		if err != nil || results[1].Err != nil {
			t.Fatal(results, err)
		}
		errs := map[string]error{"a post": results[0].Err}
		_, errs["put"] = b.PutBatch(t.Context(), "b", nil, 1)
		_, errs["get"] = b.Batch(t.Context(), "b", 0)
		_, errs["close"] = b.CloseBatch(t.Context(), "b")
		_, _, errs["list"] = b.Batches(t.Context(), "", 10, nil)
		for what, err := range errs {
			if job.KindOf(err) != job.Unsupported || !strings.Contains(err.Error(), "this board's driver counts no batches") || !strings.Contains(err.Error(), "a board in another store") {
				t.Errorf("%s: %v, want UNSUPPORTED and what would do", what, err)
			}
		}
	})
}

// TestExchangedWhileItFollows: what follows a batch is exchanged or refused, and not taken and left
// out, whenever that is asked for: as it is about to be posted, and where its post failed.
func TestExchangedWhileItFollows(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"while it is posted": false, "after it was refused": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				var b *Board
				var once sync.Once
				var put error
				store := &spy{Driver: openStore(t), t: t}
				store.apply = func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result {
					refused := false
					if ops[0].Emptied == "b" {
						once.Do(func() {
							_, put = b.PutBatch(ctx, "b", &job.Posting{Name: "second"}, 1)
							refused = fails
						})
					}
					if refused {
						return []driver.Result{{Kind: job.Invalid, Message: "not this one"}}
					}
					return next(ctx, ops)
				}
				b = start(t, store, Spec{})
				if _, err := b.PutBatch(t.Context(), "b", &job.Posting{Name: "first"}, 1); err != nil {
					t.Fatal(err)
				}
				if _, err := b.Post(t.Context(), []job.Posting{{Name: "part", Batch: "b"}}); err != nil {
					t.Fatal(err)
				}
				part := claimOne(t, b, ClaimRequest{})
				wantKind(t, one(b.Consume(t.Context(), []Ref{refOf(b, part)})), job.NoKind)
				time.Sleep(batchPause) // the host may just have looked
				synctest.Wait()
				wantKind(t, put, job.Precondition)
				want := "first"
				if fails {
					want = "second"
					time.Sleep(50 * time.Millisecond)
					synctest.Wait()
					if _, err := b.PutBatch(t.Context(), "b", &job.Posting{Name: want}, 1); err != nil {
						t.Error("what was refused cannot be exchanged:", err)
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if c := claimOne(t, b, ClaimRequest{}); c.Job.Name != want {
					t.Errorf("%s follows, want %s", c.Job.Name, want)
				}
				if shown, err := b.Batch(t.Context(), "b", 0); err != nil || shown.Then.Name != want || !shown.Done() {
					t.Errorf("the batch is shown as %+v: %v", shown, err)
				}
			})
		})
	}
}

// TestExchangedAsItIsClosed: what follows a batch is what was put last, also where that has the uuid
// of the one before and comes as a host has begun to close the batch.
func TestExchangedAsItIsClosed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		ctx, id := t.Context(), job.ID{1}
		d := &afterClose{Driver: openStore(t)}
		b := start(t, d, Spec{})
		put := func(name string) {
			if _, err := b.PutBatch(ctx, "b", &job.Posting{ID: id, Name: name}, 1); err != nil {
				t.Error(err)
			}
		}
		d.do = sync.OnceFunc(func() { put("second") })
		put("first")
		post(t, b, job.Posting{Name: "part", Batch: "b"})
		part := claimOne(t, b, ClaimRequest{})
		wantKind(t, one(b.Consume(ctx, []Ref{refOf(b, part)})), job.NoKind)
		time.Sleep(time.Minute)
		synctest.Wait()
		if c := claimOne(t, b, ClaimRequest{}); c.ID != id || c.Job.Name != "second" {
			t.Errorf("%s follows, want what was put last", c.Job.Name)
		}
		if shown, err := b.Batch(ctx, "b", 0); err != nil || shown.Then.Name != "second" || !shown.Done() {
			t.Errorf("the batch is shown as %+v: %v", shown, err)
		}
	})
}

// afterClose is a driver that does something when it has closed a group.
type afterClose struct {
	driver.Driver
	do func()
}

// Apply applies ops.
func (d *afterClose) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	results := d.Driver.Apply(ctx, board, ops)
	if slices.ContainsFunc(ops, func(op driver.Op) bool { return op.Close }) {
		d.do()
	}
	return results
}

// TestRefusedAgainAndAgain: what follows a batch and is refused, for whatever reason, is tried now and
// then by each host, the batch says why it is not posted, and another one is tried at once.
func TestRefusedAgainAndAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		then    job.Posting
		full    string // what the store says to it
		problem string
	}{
		"its own batch is closed": {job.Posting{Name: "x", Batch: "own"}, "", `batch: "own" is closed`},
		"the store is full":       {job.Posting{Name: "x"}, "no room for it", "no room for it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				const hosts, most = 2, 30 // tries of each host in an hour: they come to be five minutes apart
				ctx := t.Context()
				d := &refusing{Driver: openStore(t), full: c.full}
				b := start(t, d, Spec{})
				start(t, d, Spec{})
				post(t, b, job.Posting{Name: "of its own batch", Batch: "own"})
				if _, err := b.CloseBatch(ctx, "own"); err != nil {
					t.Fatal(err)
				}
				if _, err := b.PutBatch(ctx, "b", &c.then, 1); err != nil {
					t.Fatal(err)
				}
				part := post(t, b, job.Posting{Name: "part", Batch: "b"})[0]
				claimed := claimOne(t, b, ClaimRequest{IDs: []job.ID{part.ID}})
				wantKind(t, one(b.Consume(ctx, []Ref{refOf(b, claimed)})), job.NoKind)
				time.Sleep(time.Hour)
				synctest.Wait()
				if tries, puts := d.tries.Load(), d.puts.Load(); tries < hosts || tries > hosts*most || puts > 3*hosts*most {
					t.Errorf("%d hosts tried it %d times in an hour, and wrote the batch's record %d times", hosts, tries, puts)
				}
				if shown, err := b.Batch(ctx, "b", 0); err != nil || !strings.Contains(shown.Problem, c.problem) {
					t.Errorf("the batch's problem is %q, %v; want %q", shown.Problem, err, c.problem)
				}
				if _, err := b.PutBatch(ctx, "b", &job.Posting{Name: "another"}, 1); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if shown, err := b.Batch(ctx, "b", 0); err != nil || !shown.Done() || shown.Problem != "" {
					t.Errorf("a second after another one was put the batch is %+v, %v", shown, err)
				}
			})
		})
	}
}

// refusing is a driver that counts the posts of what follows batches, and the writes of their records,
// and has no room for a job named x.
type refusing struct {
	driver.Driver
	full        string // "": it has
	tries, puts atomic.Int64
}

// Apply applies ops.
func (d *refusing) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if ops[0].Emptied == "" {
		return d.Driver.Apply(ctx, board, ops)
	}
	d.tries.Add(1)
	if d.full != "" && ops[0].Posting.Name == "x" {
		return []driver.Result{{Kind: job.QuotaExceeded, Message: d.full}}
	}
	return d.Driver.Apply(ctx, board, ops)
}

// Documents returns the documents.
func (d *refusing) Documents() driver.Documents { return putsCounted{d.Driver.Documents(), &d.puts} }

// putsCounted counts the writes of batches' records.
type putsCounted struct {
	driver.Documents
	puts *atomic.Int64
}

// Put writes a document.
func (d putsCounted) Put(ctx context.Context, space driver.Space, doc driver.Document, version uint64) (uint64, error) {
	if strings.HasPrefix(doc.Name, batchPrefix) {
		d.puts.Add(1)
	}
	return d.Documents.Put(ctx, space, doc, version)
}
