package ranking_test

import (
	"testing"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	if got := ranking.Served(10 * ranking.Faded(60)); got != 5 {
		t.Errorf("%d of 10 are left after an hour", got)
	}
	if got := ranking.Served(1.6); got != 2 {
		t.Errorf("1.6 are shown as %d", got)
	}
	for _, c := range []struct {
		rank    policy.Rank
		running int64
		want    bool
	}{
		{policy.Rank{}, 9, false}, {policy.Rank{Full: true}, 0, true}, {policy.Rank{Most: 2}, 1, false}, {policy.Rank{Most: 2}, 2, true},
	} {
		if got := ranking.Full(c.rank, c.running); got != c.want {
			t.Errorf("%+v with %d running: %t", c.rank, c.running, got)
		}
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.FixedZone("", 3600))
	for want, fact := range map[string]policy.Fact{
		"": nil, "x": "x", "7": int64(7), "1e+21": 1e21, "true": true, "2026-01-02T02:04:05.0000006Z": at,
	} {
		if got := ranking.FactText(fact); got != want {
			t.Errorf("%v is the key %q, want %q", fact, got, want)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	at := func(seconds float64) int64 {
		return ranking.Created(time.Unix(0, 0).Add(time.Duration(seconds * float64(time.Second))))
	}
	list := []ranking.Order{ // as they come
		{Score: 2, Priority: 4},
		{Score: 1, Priority: 1, OperationPriority: 9},
		{Priority: 2},
		{Priority: 3, OperationPriority: -1},
		{Priority: 3, CreatedAt: at(1)},
		{Priority: 3, CreatedAt: at(1), Sequence: 1},
		{Priority: 3, CreatedAt: at(1), Sequence: 1, ID: [16]byte{1}},
	}
	for i, a := range list {
		for j, b := range list {
			if a.Less(b) != (i < j) {
				t.Errorf("%d comes before %d: %t", i, j, a.Less(b))
			}
		}
	}
}
