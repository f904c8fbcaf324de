package bounded_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/bounded"
)

// TestGroup does ten things, three at once, twice.
func TestGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bounded.New(3)
		for range 2 {
			begun := time.Now()
			var now, most, done atomic.Int64
			for range 10 {
				g.Go(func() {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Second)
					now.Add(-1)
					done.Add(1)
				})
			}
			g.Wait()
			if took := time.Since(begun); most.Load() != 3 || done.Load() != 10 || took != 4*time.Second {
				t.Errorf("%d of ten things were done, %d at once, in %v: want all, three at once, in four seconds", done.Load(), most.Load(), took)
			}
		}
	})
}
