package heapfloor

import "testing"

func TestGrowth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live, floor uint64
		want        int
	}{
		{0, Large, 12700},
		{1 << 20, Large, 12700},
		{3 << 20, Large, 3100},
		{4 << 20, Large, 3100},
		{16 << 20, Large, 700},
		{32 << 20, Large, 300},
		{64 << 20, Large, 100},
		{512 << 20, Large, 100},
		{512<<20 + 1, Large, 50},
		{1 << 30, Large, 50},
		{2 << 30, Large, 25},
		{3 << 30, Large, 12},
		{1 << 40, Large, 1},
		{0, Small, 3100},
		{5 << 20, Small, 300},
		{16 << 20, Small, 100},
	} {
		if got := growth(c.live, c.floor); got != c.want {
			t.Errorf("%d MiB alive: may grow by %d %%, want %d %%", c.live>>20, got, c.want)
		}
	}
}
