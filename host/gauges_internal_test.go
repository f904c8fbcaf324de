package host

import (
	"fmt"
	"testing"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
)

// TestMetricsOfManyTenants: so many tenants have a sum of their own, and keep it; all others are
// one sum, and all jobs are in one of them. Who comes gets the room that another one leaves.
func TestMetricsOfManyTenants(t *testing.T) {
	t.Parallel()
	name := func(n int) string { return fmt.Sprintf("t%05d", n) }
	g := &gauges{boards: map[catalog.At]*gauged{}, others: map[string]*Gauge{}}
	fill := func(from, to int) {
		for n := from; n < to; n++ {
			at := catalog.At{Tenant: name(n), Name: "b"}
			g.boards[at] = &gauged{gauge: Gauge{Tenant: at.Tenant, Board: "b", Ready: true, Counts: &board.Counts{Ready: 1}, Events: map[string]int64{"posted": 2}}}
		}
	}
	look := func() (sums map[string]Gauge, jobs, posted int64) {
		sums = map[string]Gauge{}
		for _, one := range g.list() {
			if one.Board != OtherBoards {
				t.Errorf("%s has a board %s of its own", one.Tenant, one.Board)
			}
			sums[one.Tenant] = one
			jobs, posted = jobs+one.Counts.Ready, posted+one.Events["posted"]
		}
		return sums, jobs, posted
	}
	fill(0, MaxMetricsTenants)
	if sums, jobs, posted := look(); len(sums) != MaxMetricsTenants || jobs != MaxMetricsTenants || posted != 2*jobs {
		t.Errorf("at the limit there are %d sums with %d jobs, %d posted", len(sums), jobs, posted)
	}
	const more = 500
	fill(MaxMetricsTenants, MaxMetricsTenants+more)
	sums, jobs, posted := look()
	if rest := sums[OtherTenants]; len(sums) != MaxMetricsTenants+1 || rest.Counts.Ready != more || jobs != MaxMetricsTenants+more || posted != 2*jobs {
		t.Errorf("above the limit there are %d sums with %d jobs, %d posted, of which the others have %+v", len(sums), jobs, posted, rest.Counts)
	}
	delete(g.boards, catalog.At{Tenant: name(0), Name: "b"})
	sums, jobs, posted = look()
	if _, left := sums[name(0)]; left || len(sums) != MaxMetricsTenants+1 || jobs != MaxMetricsTenants+more-1 {
		t.Errorf("when one has gone there are %d sums with %d jobs", len(sums), jobs)
	}
	if next := sums[name(MaxMetricsTenants)]; next.Counts == nil || next.Counts.Ready != 1 || next.Events["posted"] != 0 || posted != 2*(MaxMetricsTenants+more-1) {
		t.Errorf("who got the room has %+v; %d were posted in all", next, posted)
	}
}
