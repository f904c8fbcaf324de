package poll_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/driver/poll"
)

// TestFigure asks for a figure now and then, whoever wants it how often, and nobody waits for
// an answer that does not come.
func TestFigure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, fails, hangs := int64(0), false, false
		f := poll.NewFigure(10*time.Second, func(ctx context.Context) (int64, error) {
			asked++
			if hangs {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			if fails {
				return asked, errors.New("refused")
			}
			return asked, nil
		})
		look := func(when string, want, times int64) {
			t.Helper()
			got := f.Value()
			synctest.Wait()
			if got != want || asked != times {
				t.Errorf("%s: %d, asked for %d times; want %d, %d", when, got, asked, want, times)
			}
		}
		look("before the first answer", 0, 1)
		for range 9 {
			time.Sleep(time.Second)
			look("within the period", 1, 1)
		}
		time.Sleep(time.Second)
		look("after it", 1, 2)
		look("then", 2, 2)
		fails = true
		time.Sleep(10 * time.Second)
		look("when it is refused", 2, 3)
		look("after it was", 0, 3)
		fails, hangs = false, true
		time.Sleep(10 * time.Second)
		look("while the store hangs", 0, 4)
		time.Sleep(9 * time.Second)
		look("still", 0, 4)
		time.Sleep(2 * time.Second)
		look("again", 0, 5)
		f.Close()
		look("closed", 0, 5)
	})
}
