package host

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/sleep"
)

// fuelName is the limit on what modules may use.
const fuelName = "policy_fuel_per_second"

// fuelPatience is how long a call of a policy waits for fuel. Then it fails, which
// denies, or leaves the order as it is.
const fuelPatience = time.Second

// fuelBucket counts the fuel that modules use. What a call takes is known when it has
// ended, so it may take more than there is; later ones wait for that.
type fuelBucket struct {
	total atomic.Int64

	mu   sync.Mutex
	used float64 // of one second's worth
	at   time.Time
}

// lack returns for how long there is no fuel, if there is so much in a second.
func (t *fuelBucket) lack(perSecond float64, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain(perSecond, now)
	return time.Duration(max(0, t.used-perSecond) / perSecond * float64(time.Second))
}

func (t *fuelBucket) drain(perSecond float64, now time.Time) {
	if elapsed := now.Sub(t.at).Seconds(); elapsed > 0 {
		t.used, t.at = max(0, t.used-elapsed*perSecond), now
	}
}

func (t *fuelBucket) take(fuel int64, perSecond float64, now time.Time) {
	t.total.Add(fuel)
	if perSecond <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain(perSecond, now)
	t.used += float64(fuel)
}

// gauge charges what the modules of one board use to it and to its tenant. It
// implements wasm.Gauge.
type gauge struct {
	host     *Host
	at       At
	patience time.Duration
}

func (h *Host) gauge(at At) *gauge { return &gauge{host: h, at: at, patience: fuelPatience} }

// each calls do for what is charged and the rate that it has on this host, 0 where
// there is no limit.
func (g *gauge) each(do func(t *fuelBucket, perSecond float64, limit int64, whose string) error) error {
	if b := g.host.registry.board(g.at.Tenant, g.at.Board); b != nil {
		limit := b.limits.Load().PolicyFuelPerSecond
		if err := do(&b.meter.fuel, g.rate(limit), limit, "board"); err != nil {
			return err
		}
	}
	limit := g.host.limitsOf(g.at.Tenant).PolicyFuelPerSecond
	return do(&g.host.meters.of(g.at.Tenant).fuel, g.rate(limit), limit, "tenant")
}

func (g *gauge) rate(limit int64) float64 {
	if limit == 0 {
		return 0
	}
	return max(1, g.host.share(limit))
}

// Wait waits until there is fuel.
func (g *gauge) Wait(ctx context.Context) error {
	return g.each(func(t *fuelBucket, perSecond float64, limit int64, whose string) error {
		if perSecond == 0 {
			return nil
		}
		lack := t.lack(perSecond, time.Now())
		if lack > g.patience {
			return overLimit(fuelName, limit, whose)
		}
		for ; lack > 0; lack = t.lack(perSecond, time.Now()) { // others wait for the same
			if err := sleep.For(ctx, min(lack, g.patience)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Spend notes what was used.
func (g *gauge) Spend(fuel int64) {
	_ = g.each(func(t *fuelBucket, perSecond float64, _ int64, _ string) error {
		t.take(fuel, perSecond, time.Now())
		return nil
	})
}
