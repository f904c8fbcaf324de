package fleet_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/simulation/fleet"
)

// TestDay plays a fleet of 20 servers. With BOARDD_TEST_FLEET=100 it has as many, and 1,000
// tenants and 10,000 boards for each; the table is that of docs/scaling.md.
func TestDay(t *testing.T) {
	t.Parallel()
	size := fleet.Size{Servers: 20, Spare: 1, Tenants: 2000, Boards: 40_000, Reads: 10 * time.Second}
	if text := os.Getenv("BOARDD_TEST_FLEET"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 10 {
			t.Fatalf("BOARDD_TEST_FLEET: %q, want a number of servers, at least 10", text)
		}
		size.Servers, size.Tenants, size.Boards = n, 1000*n, 10_000*n
	}
	began := time.Now()
	r, err := fleet.Day(size, func(format string, args ...any) {
		t.Logf("%s: %s", time.Since(began).Round(time.Second), fmt.Sprintf(format, args...))
	})
	if err != nil {
		t.Error(err)
	}
	for _, row := range r.Rows {
		t.Logf("| %s | %d | %s | %s | %d | %d of %d | %d | %d |", row.What, row.Boards, shares(row.Called), shares(row.Uncalled), row.Never, row.Failed, row.Made, row.Own, row.Calls)
	}
	least, most := math.Inf(1), 0.0
	for _, j := range r.Joins {
		share := float64(j.Moved*j.Servers) / float64(size.Boards)
		least, most = min(least, share), max(most, share)
	}
	t.Logf("%d times a server came, and took %.3f to %.3f of its share", len(r.Joins), least, most)
	if len(r.Joins) == 0 {
		t.Error("no server came")
	}
	t.Logf("%d calls, %d forwarded (%.4f), %d made again, %d failed; the upgrade took %s, the day %s, on this machine %s",
		r.Calls, r.Forwarded, float64(r.Forwarded)/float64(r.Calls), r.Again, r.Failed, r.Upgraded, r.Lasted, time.Since(began).Round(time.Second))
}

// shares are the median, the 99th percentile and the most.
func shares(list []time.Duration) string {
	if len(list) == 0 {
		return ""
	}
	if !slices.IsSorted(list) {
		panic("not sorted")
	}
	at := func(share float64) string {
		return fmt.Sprintf("%.1f", list[int(share*float64(len(list)-1))].Seconds())
	}
	return at(0.5) + " / " + at(0.99) + " / " + at(1)
}
