package ranking_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

func TestWorth(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rank    policy.Rank
		running int64
		want    int64
	}{
		{policy.Rank{Score: 7}, 9, 7},
		{policy.Rank{Score: 7, Full: true}, 0, ranking.FullKey},
		{policy.Rank{Score: 7, Most: 2}, 1, 7},
		{policy.Rank{Score: 7, Most: 2}, 2, ranking.FullKey},
		{policy.Rank{Score: math.MinInt64}, 0, ranking.FullKey + 1},
		{policy.Rank{Score: math.MaxInt64}, 0, ranking.Unranked - 1},
	} {
		if got := ranking.Worth(c.rank, c.running); got != c.want {
			t.Errorf("%+v with %d running is worth %d, want %d", c.rank, c.running, got, c.want)
		}
	}
}

// What a policy said holds for as many claims as it was asked about, and for nothing
// else that happens.
func TestRanked(t *testing.T) {
	t.Parallel()
	base := ranking.Counts{Running: 2, Waiting: 3, Served: 5}
	at := time.Unix(60, 0)
	keys := ranking.Ask(nil, "k", base, at)
	want := []policy.Key{
		{Key: "k", Running: 2, Waiting: 3, Served: 5, Oldest: at},
		{Key: "k", Running: 3, Waiting: 2, Served: 6, Oldest: at},
		{Key: "k", Running: 4, Waiting: 1, Served: 7, Oldest: at},
		{Key: "k", Running: 5, Served: 8},
	}
	if !slices.Equal(keys, want) {
		t.Fatalf("asked %+v", keys)
	}
	var r ranking.Ranked
	if !r.Look(base) || r.Worth(2) != ranking.Unranked {
		t.Error("it was not asked, and is known")
	}
	r.Rank([]policy.Rank{{Score: 10}, {Score: 20}, {Score: 30}, {Full: true}}, base, 1)
	after := func(n int64) ranking.Counts { return ranking.Counts{Running: 2 + n, Waiting: 3 - n, Served: 5 + n} }
	for n, want := range []int64{10, 20, 30, ranking.FullKey, ranking.Unranked} {
		if got := r.Worth(2 + int64(n)); got != want {
			t.Errorf("after %d claims it is worth %d, want %d", n, got, want)
		}
		if n < ranking.Rungs && r.Look(after(int64(n))) {
			t.Errorf("after %d claims it is to be asked again", n)
		}
	}
	// Once something else has happened it stays so, whatever becomes of the counts.
	if !r.Look(ranking.Counts{Running: 1, Waiting: 3, Served: 5}) || !r.Look(base) {
		t.Error("a job has ended, and nobody asks")
	}
	if got := r.Worth(1); got != 10 {
		t.Errorf("meanwhile it is worth %d", got)
	}
	r.Keep(after(1), 2)
	if r.Look(after(1)) || r.Serial != 2 || r.Worth(3) != 20 || r.Worth(4) != 20 {
		t.Errorf("a policy that fails: %+v", r)
	}
}
