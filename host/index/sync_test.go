package index

import (
	"reflect"
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

// TestCopyTo copies more jobs than are looked at in one piece, in every state.
func TestCopyTo(t *testing.T) {
	t.Parallel()
	from, to := New(), New()
	const jobs = 3*slice + 7
	for n := range jobs {
		e := entry(n)
		switch n % 4 {
		case 1:
			e = claimedBy(e, 20, "w", time.Hour)
		case 2:
			e.Held = true
		case 3:
			e.NotBefore = time.Now().Add(time.Hour)
		}
		from.Put(e)
	}
	from.Take(t.Context(), from.everyone, 1) // whose claim is under way
	from.CopyTo(to)
	if a, b := from.Count(), to.Count(); a != b || a.Ready+a.Claimed+a.Delayed != jobs {
		t.Errorf("there are %+v, and %+v in the copy: want the same %d jobs", a, b, jobs)
	}
	for n := range jobs {
		a, _ := from.Get(id(n))
		if b, ok := to.Get(id(n)); !ok || !reflect.DeepEqual(a, b) {
			t.Fatalf("job %d is %+v, and %+v in the copy", n, a, b)
		}
	}
}
