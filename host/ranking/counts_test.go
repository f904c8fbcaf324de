package ranking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/policy"
)

func TestCounts(t *testing.T) {
	t.Parallel()
	var served ranking.Served
	for range 10 {
		served.Add(100)
	}
	if got := []int64{served.At(99), served.At(100), served.At(160), served.At(100 + 5*60)}; !slices.Equal(got, []int64{10, 10, 5, 0}) {
		t.Errorf("of ten claims in the minute 100 are left %v", got)
	}
	served.Add(40)
	if got := served.At(100); got != 11 { // the half of it
		t.Errorf("with one of the hour before: %d", got)
	}
	served.Add(100 + 10*60) // what was before is less than half of one
	if got := served.At(100 + 10*60); got != 1 {
		t.Errorf("after many half-lives: %d", got)
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
