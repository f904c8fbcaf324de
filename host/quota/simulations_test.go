package quota

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// TestSimulatingTakesTurns: one of a tenant, two of the server, the next in the order
// in which they came.
func TestSimulatingTakesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s Simulations
		for _, tenant := range []string{"a", "b"} {
			if err := s.Enter(t.Context(), tenant, 2); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Enter(t.Context(), "a", 2); job.KindOf(err) != job.QuotaExceeded {
			t.Errorf("a second one of a tenant: %v", err)
		}
		order := make(chan string, 3)
		for _, tenant := range []string{"c", "d"} {
			go func() {
				if err := s.Enter(t.Context(), tenant, 2); err != nil {
					t.Error(err)
				}
				order <- tenant
			}()
			synctest.Wait()
		}
		late, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := s.Enter(late, "e", 2); job.KindOf(err) != job.QuotaExceeded {
			t.Errorf("one that waited for too long: %v", err)
		}
		s.Leave("a")
		if got := <-order; got != "c" {
			t.Errorf("%s came first", got)
		}
		s.Leave("c")
		if got := <-order; got != "d" {
			t.Errorf("%s came next", got)
		}
		s.Leave("b")
		s.Leave("d")
		if s.running != 0 || len(s.tenants) != 0 || len(s.line) != 0 {
			t.Errorf("%+v is left", &s)
		}
	})
}
