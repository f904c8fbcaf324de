package quota

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/sleep"
)

// fuelName is the limit on what modules may use.
const fuelName = "policy_fuel_per_second"

// FuelPatience is how long a call of a policy waits for fuel. Then it fails, which
// denies, or leaves the order as it is.
const FuelPatience = time.Second

// Gauge charges the fuel that the modules of one board use to it and to its tenant.
// What a call of a module takes is known when it has ended, so it may take more than
// there is; later ones wait for that. It implements wasm.Gauge.
type Gauge struct {
	quotas        *Quotas
	tenant, board string
	patience      time.Duration
}

// Gauge returns that of a board, "" for what belongs to no board. patience is how long
// a call waits for fuel.
func (q *Quotas) Gauge(tenant, board string, patience time.Duration) *Gauge {
	return &Gauge{q, tenant, board, patience}
}

// Tenant returns the name of the tenant that is charged.
func (g *Gauge) Tenant() string { return g.tenant }

// each calls do for what is charged and the rate that it has on this host, 0 where
// there is no limit.
func (g *Gauge) each(do func(m *meter, perSecond float64, limit int64, whose string) error) error {
	if b := g.quotas.Board(g.tenant, g.board); b != nil {
		limit := b.Limits().PolicyFuelPerSecond
		if err := do(b.meter(), rate(limit, g.quotas.boardPerSecond(limit)), limit, "board"); err != nil {
			return err
		}
	}
	limit, t := g.quotas.Limits(g.tenant).PolicyFuelPerSecond, g.quotas.Tenant(g.tenant)
	return do(&t.meter, rate(limit, g.quotas.perSecond(t, fuelName, limit, time.Now())), limit, "tenant")
}

// rate is this host's part of a limit, 0 where there is none.
func rate(limit int64, part float64) float64 {
	if limit == 0 {
		return 0
	}
	return max(1, part)
}

// Wait waits until there is fuel.
func (g *Gauge) Wait(ctx context.Context) error {
	if t := g.quotas.Tenant(g.tenant); g.quotas.Limits(g.tenant).PolicyFuelPerSecond > 0 {
		g.quotas.begin(ctx, g.tenant, t, &t.meter.fuel)
	}
	return g.each(func(m *meter, perSecond float64, limit int64, whose string) error {
		if perSecond == 0 {
			return nil
		}
		lack := m.fuel.lack(perSecond, time.Now())
		if lack > g.patience {
			g.quotas.short(g.tenant)
			return Over(fuelName, limit, whose)
		}
		for ; lack > 0; lack = m.fuel.lack(perSecond, time.Now()) { // others wait for the same
			if err := sleep.For(ctx, min(lack, g.patience)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Spend notes what was used.
func (g *Gauge) Spend(fuel int64) {
	_ = g.each(func(m *meter, perSecond float64, _ int64, _ string) error {
		m.burnt.Add(fuel)
		if perSecond > 0 {
			m.fuel.owe(float64(fuel), perSecond, time.Now())
		}
		return nil
	})
}
