package heapfloor

import "testing"

func TestGrowth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 12700}, {1 << 20, 12700}, {3 << 20, 3100}, {4 << 20, 3100}, {16 << 20, 700}, {32 << 20, 300}, {64 << 20, 100}, {1 << 30, 100},
	} {
		if got := growth(c.live); got != c.want {
			t.Errorf("%d MiB alive: may grow by %d %%, want %d %%", c.live>>20, got, c.want)
		}
	}
}
