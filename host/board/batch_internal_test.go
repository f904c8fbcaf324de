package board

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
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
