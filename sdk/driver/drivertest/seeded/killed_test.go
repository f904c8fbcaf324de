package seeded_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// shaken is a driver whose store was killed: of the next calls each third is not done and says
// so, each third is done and does not say so, and each third is neither.
type shaken struct {
	lasting

	left  *atomic.Int64
	wrong string
}

func (s shaken) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	n := s.left.Add(-1)
	if n < 0 {
		return s.Driver.Apply(ctx, board, ops)
	}
	kind := job.OutcomeUnknown
	switch {
	case s.wrong == "does not know what it has done":
		ops = []driver.Op{ops[0]}
		ops[0].Request = [16]byte{1, byte(n)}
		s.Driver.Apply(ctx, board, ops)
	case n%3 == 0 && s.wrong == "acknowledges what it has lost":
		return []driver.Result{{Position: 1, Version: 1}}
	case n%3 == 0:
		if kind = job.Unavailable; s.wrong == "has done what it refused" {
			s.Driver.Apply(ctx, board, ops)
		}
	case n%3 == 1:
		s.Driver.Apply(ctx, board, ops)
	}
	return []driver.Result{{Kind: kind, Message: "the store was killed"}}
}

// TestKilledPrograms checks that programs on a store that is killed find what a driver says
// wrongly then, and nothing about one that is right.
func TestKilledPrograms(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "acknowledges what it has lost", "has done what it refused", "does not know what it has done"} {
		t.Run(wrong, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store, err := memdriver.Open(t.Context(), driver.Config{})
				if err != nil {
					t.Fatal(err)
				}
				h := harness(func(drivertest.T) driver.Driver { return lasting{store} })
				h.Killable = func(drivertest.T) (func() (driver.Driver, error), func()) {
					var left atomic.Int64
					return func() (driver.Driver, error) { return shaken{lasting{store}, &left, wrong}, nil }, func() { left.Store(4) }
				}
				h.Only, h.Programs = []string{"random/killed"}, 200
				found := problems(t, h)["random/killed"]
				if (len(found) > 0) != (wrong != "") {
					t.Errorf("a driver that %q after its store was killed: %q", wrong, found)
				}
			})
		})
	}
}
