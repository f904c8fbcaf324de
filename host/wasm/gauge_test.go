package wasm_test

import (
	"context"
	"errors"
	"testing"

	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/job"
)

// charged notes what it is told, and refuses when it is empty.
type charged struct {
	left  int64
	spent []int64
}

func (c *charged) Wait(context.Context) error {
	if c.left <= 0 {
		return job.Errorf(job.QuotaExceeded, "no fuel")
	}
	return nil
}

func (c *charged) Spend(fuel int64) {
	c.left -= fuel
	c.spent = append(c.spent, fuel)
}

// Each call is charged what it used, one that fails too; without fuel there is no
// call, and the next one with fuel is well.
func TestGauge(t *testing.T) {
	t.Parallel()
	text := score(`(if (i32.eq (i32.load offset=20 (local.get $block)) (i32.const 2)) (then (loop (br 0)))) (i32.const 0)`)
	for place, config := range map[string]wasm.Config{"here": {Instances: 1}, "apart": {Instances: 1, Child: child}} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			m, err := newEngine(t, config).Load(t.Context(), assemble(t, text, `"ordering"`))
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			g := &charged{left: 1}
			p, err := m.BindCharged(t.Context(), nil, g)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if err := p.Score(t.Context(), jobs(1, 1), make([]int64, 1)); err != nil || len(g.spent) != 1 || g.spent[0] != p.Used() || g.spent[0] <= 0 {
				t.Fatalf("%v: it was charged %v, and used %d", err, g.spent, p.Used())
			}
			if err := p.Score(t.Context(), jobs(1, 1), make([]int64, 1)); !errors.Is(err, job.QuotaExceeded) || len(g.spent) != 1 {
				t.Errorf("without fuel: %v, charged %v", err, g.spent)
			}
			g.left = 1 // the call that ends by its own limit takes all of that
			if err := p.Score(t.Context(), jobs(2, 1), make([]int64, 2)); err == nil || len(g.spent) != 2 || g.spent[1] < wasm.DefaultFuelCall {
				t.Errorf("an endless loop: %v, charged %v", err, g.spent)
			}
			g.left = 1
			if err := p.Score(t.Context(), jobs(1, 1), make([]int64, 1)); err != nil || g.spent[2] != g.spent[0] {
				t.Errorf("%v, charged %v", err, g.spent)
			}
		})
	}
}
