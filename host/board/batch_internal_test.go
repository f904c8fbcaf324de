package board

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

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
