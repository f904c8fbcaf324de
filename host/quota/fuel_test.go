package quota

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/job"
)

// A tenant's modules have so much fuel in a second: a call waits a moment for it,
// and fails where that would take long.
func TestFuel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limits := map[string]config.Limits{"default": {PolicyFuelPerSecond: 1000}}
		q := &Quotas{Limits: func(of string) config.Limits { return limits[of] }, Board: func(string, string) *Board { return nil }}
		g := q.Gauge("default", "b", FuelPatience)
		wait := func() (time.Duration, error) {
			began := time.Now()
			err := g.Wait(t.Context())
			return time.Since(began), err
		}
		g.Spend(1000)
		if took, err := wait(); took != 0 || err != nil {
			t.Errorf("with fuel left it took %v, %v", took, err)
		}
		g.Spend(500)
		if took, err := wait(); took < 499*time.Millisecond || took > 501*time.Millisecond || err != nil {
			t.Errorf("with half a second's worth too much used it took %v, %v", took, err)
		}
		g.Spend(5000)
		if took, err := wait(); took != 0 || !errors.Is(err, job.QuotaExceeded) {
			t.Errorf("with five seconds' worth too much used it took %v, %v", took, err)
		}
		time.Sleep(5 * time.Second)
		if took, err := wait(); took != 0 || err != nil {
			t.Errorf("five seconds later it took %v, %v", took, err)
		}
		if used := q.Tenant("default").meter.burnt.Load(); used != 6500 {
			t.Errorf("%d were used, want 6500", used)
		}
		free := q.Gauge("other", "b", FuelPatience)
		free.Spend(1 << 40)
		if err := free.Wait(t.Context()); err != nil {
			t.Errorf("a tenant without a limit: %v", err)
		}
	})
}
