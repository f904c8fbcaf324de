package transition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	stands := map[string]int64{"a": 3, "b": 1}
	limits := func(list ...driver.Limit) []driver.Limit { return list }
	for _, tt := range []struct {
		name   string
		within []driver.Limit
		claim  []driver.Limit // that lapsed
		want   string
	}{
		{"nothing", nil, nil, ""},
		{"up to the limit", limits(driver.Limit{Key: "a", Max: 4}), nil, ""},
		{"one too many", limits(driver.Limit{Key: "a", Max: 3}), nil, "a"},
		{"the weight", limits(driver.Limit{Key: "b", Max: 4}, driver.Limit{Key: "a", Weight: 3, Max: 5}), nil, "a"},
		{"a lapsed claim makes room", limits(driver.Limit{Key: "a", Max: 3}), limits(driver.Limit{Key: "a"}), ""},
		{"a key that comes twice", limits(driver.Limit{Key: "b", Max: 2}, driver.Limit{Key: "b", Max: 5}), nil, "b"},
		{"a new key", limits(driver.Limit{Key: "c", Weight: 2, Max: 1}), nil, "c"},
	} {
		f := factsOf("lapsed")
		op := driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Owner: "me", Lease: time.Hour}}
		plan, _ := transition.Candidate(&op, &driver.Candidate{Job: id, Nonce: [16]byte{7}, Limits: tt.within}, &f)
		moves := plan.Moves(limits(driver.Limit{Key: "posted"}), tt.claim)
		if got := transition.Room(plan.Within, moves, func(key string) int64 { return stands[key] }); got != tt.want {
			t.Errorf("%s: full: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestMoves(t *testing.T) {
	t.Parallel()
	posting, claim := []driver.Limit{{Key: "p", Weight: 2}, {Key: "a"}}, []driver.Limit{{Key: "a"}, {Key: "a"}}
	for kind, want := range map[driver.OpKind]transition.Moves{
		driver.Update: nil, driver.Release: {{"a", -2}}, driver.Trash: {{"a", -3}, {"p", -2}}, driver.Remove: {{"a", -3}, {"p", -2}},
	} {
		f := factsOf("mine")
		plan, _ := transition.Decide(&driver.Op{Kind: kind, Job: id}, &f)
		if diff := cmp.Diff(want, plan.Moves(posting, claim)); diff != "" {
			t.Errorf("op %d (-want +got):\n%s", kind, diff)
		}
	}
}
