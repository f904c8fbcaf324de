package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// mute is a store that answers no count, or nothing about its health, once it was told so.
type mute struct {
	driver.Driver

	counts, health atomic.Bool
	asked          atomic.Int64 // for counts
}

func (d *mute) Count(ctx context.Context, board string) (driver.Counts, error) {
	d.asked.Add(1)
	if d.counts.Load() {
		<-ctx.Done()
		return driver.Counts{}, ctx.Err()
	}
	return d.Driver.Count(ctx, board)
}

func (d *mute) Health(ctx context.Context) error {
	if d.health.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return d.Driver.Health(ctx)
}

// TestGaugesOfASilentStore: who reads metrics waits a second at most for a store that does not
// count, and not at all for one that is known to be silent. Meanwhile there is what it
// counted last, and what the board knows by itself; the store is asked once at a time.
func TestGaugesOfASilentStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &mute{}
		program := memdriver.Program().Wrapped(func(inner driver.Driver) driver.Driver {
			d.Driver = inner
			return d
		})
		c := oneBackend("", board("a", "store"), board("b", "other"))
		c.Backends = append(c.Backends, config.Backend{Name: "other", Driver: "mute", Settings: []byte("{}")})
		h, _ := open(t, host.Config{Config: c, Drivers: map[string]driver.Program{"memory": memdriver.Program(), "mute": program}})
		for _, name := range []string{"a", "b"} {
			post(t, h, name, job.Posting{Name: "one"})
		}
		read := func(want time.Duration) (a, b host.Gauge) {
			t.Helper()
			began := time.Now()
			list := h.Gauges(t.Context(), 10)
			if took := time.Since(began); took != want {
				t.Errorf("reading took %v, want %v", took, want)
			}
			if len(list) != 2 || list[0].Counts == nil || list[1].Counts == nil {
				t.Fatalf("got %+v", list)
			}
			return list[0], list[1]
		}
		_, before := read(0)
		if before.Counts.Ready != 1 || !before.Counted.Equal(time.Now()) {
			t.Errorf("before: %+v of %v", before.Counts, before.Counted)
		}

		d.counts.Store(true)
		time.Sleep(time.Minute)
		post(t, h, "b", job.Posting{Name: "two"})
		synctest.Wait()
		asked := d.asked.Load()
		for range 3 {
			a, b := read(time.Second)
			if a.Counts.Ready != 1 || time.Since(a.Counted) > time.Second {
				t.Errorf("the other store has %+v of %v", a.Counts, a.Counted)
			}
			if b.Counts.Ready != 2 || !b.Counted.Equal(before.Counted) {
				t.Errorf("the silent store has %+v of %v, want two jobs and what it counted at %v", b.Counts, b.Counted, before.Counted)
			}
		}
		if n := d.asked.Load() - asked; n != 1 {
			t.Errorf("the silent store was asked %d times", n)
		}

		d.health.Store(true)
		time.Sleep(time.Minute) // in which that is known, and the call given up
		read(0)
		if n := d.asked.Load() - asked; n != 1 {
			t.Errorf("the store that is known to be silent was asked %d times", n-1)
		}

		d.counts.Store(false)
		d.health.Store(false)
		time.Sleep(time.Minute)
		if _, after := read(0); after.Counts.Ready != 2 || !after.Counted.Equal(time.Now()) {
			t.Errorf("after: %+v of %v", after.Counts, after.Counted)
		}
	})
}
