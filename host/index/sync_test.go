package index

import (
	"testing"
	"testing/synctest"
	"time"
)

// A claim of another program may end while no driver looks, and then the job is at an
// earlier position than it had with the claim. The first news after a snapshot has begun
// are taken all the same, those after them by their positions; so they are for claims of
// ours, which end at a position of their own.
func TestForeignClaimInSync(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		foreign bool
		sync    bool
		live    bool // the claim is news again after the snapshot began
		claimed bool
	}{
		{"theirs, found free", true, true, false, false},
		{"theirs, claimed anew meanwhile", true, true, true, true},
		{"theirs, without a snapshot", true, false, false, true},
		{"ours", false, true, false, true},
	} {
		ix := New()
		held := claimedBy(entry(10), 20, "them", time.Hour)
		held.Claim.Foreign = c.foreign
		ix.Put(held)
		if c.sync {
			s := ix.Sync()
			defer s.End(30)
		}
		if c.live {
			ix.Put(at(held, 25))
		}
		ix.Put(at(entry(10), 15))
		e, ok := ix.Get(id(10))
		if !ok || (e.Claim != nil) != c.claimed {
			t.Errorf("%s: the job is claimed: %v, want %v", c.name, ok && e.Claim != nil, c.claimed)
		}
	}
}

// The lease of another program may end without a change: then the job is where it was, and
// what the store says after the lease's end is taken. Before that, and of claims of ours, it
// is old news.
func TestForeignLeaseIsOver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		foreign bool
		after   time.Duration
		claimed bool
	}{
		{"theirs", true, time.Minute, false},
		{"theirs, before its end", true, time.Minute - 1, true},
		{"ours", false, time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ix := New()
			held := claimedBy(entry(10), 20, "them", time.Minute)
			held.Claim.Foreign = c.foreign
			ix.Put(held)
			time.Sleep(c.after)
			ix.Put(at(entry(10), 20))
			e, ok := ix.Get(id(10))
			if !ok || (e.Claim != nil) != c.claimed {
				t.Errorf("%s: the job is claimed: %v, want %v", c.name, ok && e.Claim != nil, c.claimed)
			}
		})
	}
}
