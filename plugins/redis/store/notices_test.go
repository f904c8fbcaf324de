package store

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestNotices checks when jobs that Redis named are looked at: soon, unless what named them
// was our own change.
func TestNotices(t *testing.T) {
	t.Parallel()
	k := keysOf("n:")
	id := numbered(1)
	key := k.owner(id.String())
	ours := func(kind job.EventType, state job.State) []event { return []event{{id: id, kind: kind, state: state}} }
	for name, c := range map[string]struct {
		does func(n *notices)
		want time.Duration // after which the job is looked at; below 0: never
	}{
		"its owner changed":          {func(n *notices) { n.add(&k, key) }, noticeTime},
		"it was modified":            {func(n *notices) { n.add(&k, k.modified(id.String())) }, noticeTime},
		"both":                       {func(n *notices) { n.add(&k, key, k.modified(id.String())) }, noticeTime},
		"another key of it":          {func(n *notices) { n.add(&k, "n:"+id.String()+".other") }, -1},
		"another namespace's":        {func(n *notices) { n.add(&k, "m:"+id.String()+".owned") }, -1},
		"a namespace within":         {func(n *notices) { n.add(&k, "n:m:"+id.String()+".owned") }, -1},
		"our own keys":               {func(n *notices) { n.add(&k, k.head, k.listings, k.events) }, -1},
		"we claimed it":              {func(n *notices) { n.add(&k, key); n.follow(ours(job.ClaimedEvent, job.Claimed)) }, noticeLater},
		"we ended it":                {func(n *notices) { n.add(&k, key); n.follow(ours(job.ConsumedEvent, job.Complete)) }, -1},
		"another program claimed it": {func(n *notices) { n.add(&k, key); n.follow(ours(job.ForeignChange, job.Claimed)) }, noticeTime},
		"we changed it before that":  {func(n *notices) { n.follow(ours(job.ClaimedEvent, job.Claimed)); n.add(&k, key) }, noticeTime},
		"we changed it again and again": {func(n *notices) {
			n.add(&k, key)
			for range 5 {
				n.follow(ours(job.ClaimedEvent, job.Claimed))
				n.add(&k, key)
			}
		}, noticeLater},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := newNotices()
				c.does(n)
				got := time.Duration(-1)
				for begun := time.Now(); time.Since(begun) < time.Minute && got < 0; time.Sleep(10 * time.Millisecond) {
					ids, over := n.take()
					if over || len(ids) > 0 && !slices.Equal(ids, []string{id.String()}) {
						t.Fatalf("named are %v, too many: %v", ids, over)
					}
					if len(ids) > 0 {
						got = time.Since(begun)
					}
				}
				if got != c.want {
					t.Errorf("it is looked at after %v, want %v", got, c.want)
				}
			})
		})
	}
}

// TestNoticesMost checks the numbers of jobs that wait and that are looked at at once.
func TestNoticesMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k := keysOf("n:")
		n := newNotices()
		for i := range noticesMost {
			n.add(&k, k.owner(numbered(i).String()))
		}
		if n.over {
			t.Errorf("%d are too many", noticesMost)
		}
		n.add(&k, k.owner(numbered(0).String())) // it waits already
		if n.over {
			t.Errorf("one that waits already is one too many")
		}
		n.add(&k, k.owner(numbered(noticesMost).String()))
		time.Sleep(noticeTime)
		if ids, over := n.take(); len(ids) != noticesOnce || !over {
			t.Errorf("one more than %d: %d are looked at, want %d; too many: %v", noticesMost, len(ids), noticesOnce, over)
		}
	})
}

// trackers is how many connections of the server have keys tracked by their beginning.
func (f *field) trackers() (n int) {
	f.Helper()
	for line := range strings.Lines(f.server.Command("CLIENT", "LIST")) {
		for word := range strings.FieldsSeq(line) {
			if flags, ok := strings.CutPrefix(word, "flags="); ok && strings.Contains(flags, "B") {
				n++
			}
		}
	}
	return n
}

// tracking returns notices of a board whose keys are tracked.
func (f *field) tracking() *notices {
	f.Helper()
	n := newNotices()
	f.store.track(f.Context(), &f.board.opening.Load().keys, n)
	f.Cleanup(func() { n.stop() })
	if !n.on() || f.trackers() != 1 {
		f.Fatalf("%d connections have keys tracked: %v", f.trackers(), n.on())
	}
	n.take() // that everything is to be looked at
	return n
}

// TestTracking has Redis name jobs without notifications, over a connection that is lost,
// until the server refuses.
func TestTracking(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	k := &f.board.opening.Load().keys
	n := f.tracking()
	waits := func(id job.ID) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		_, ok := n.ids[id.String()]
		return ok
	}
	over := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.over
	}
	claim := func(id job.ID) {
		t.Helper()
		f.claim(id)
		testserver.Eventually(t, fmt.Sprintf("job %v is named", id), func() bool { return waits(id) })
	}
	claim(numbered(1))
	f.server.Command("CLIENT", "KILL", "TYPE", "pubsub")
	testserver.Eventually(t, "everything is looked at again, since the connection was lost", over)
	claim(numbered(2))
	f.server.Command("ACL", "SETUSER", "default", "-client|tracking")
	f.server.Command("CLIENT", "KILL", "TYPE", "pubsub")
	testserver.Eventually(t, "it goes on without", func() bool { return !n.on() && n.without.Load() && f.trackers() == 0 })
	again := newNotices()
	if f.store.track(t.Context(), k, again); again.on() || !again.without.Load() || f.trackers() != 0 {
		t.Errorf("keys are tracked though the server refuses")
	}
	f.server.Command("ACL", "SETUSER", "default", "+client|tracking")
	f.server.Command("ACL", "SETUSER", "default", "resetchannels")
	deaf := newNotices()
	if f.store.track(t.Context(), k, deaf); deaf.on() || !deaf.without.Load() || f.trackers() != 0 {
		t.Errorf("keys are tracked though their names may not be heard")
	}
	f.server.Command("ACL", "SETUSER", "default", "allchannels")
	none, all := keysOf(""), newNotices()
	if f.store.track(t.Context(), &none, all); all.on() || !all.without.Load() || f.trackers() != 0 {
		t.Errorf("keys are tracked without a namespace, so all of the server's")
	}
}

func (f *field) claim(id job.ID) {
	f.Helper()
	k := &f.board.opening.Load().keys
	if err := f.client.Set(f.Context(), k.owner(id.String()), "py", 0).Err(); err != nil {
		f.Fatal(err)
	}
}

// TestTrackedClaim checks that a claim of another program gets into our records by its
// name alone, without a search.
func TestTrackedClaim(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.sweep.notices = f.tracking()
	f.claim(numbered(3))
	testserver.Eventually(t, "the claim is in our records", func() bool {
		f.sweep.reconcileNotices(t.Context())
		raw, err := f.client.HGet(t.Context(), "b:boardd:jobs", numbered(3).String()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return flagsOf(raw)&flagForeign != 0
	})
}

// untracked forgets how long the first search took, on a machine that is busy.
func (f *field) untracked() {
	f.sweep.notices.stop()
	f.sweep.notices, f.sweep.took = newNotices(), 0
}

// TestTwoListen has two listen to one board. One leaves off, and the other one hears on.
func TestTwoListen(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.server.Command("CONFIG", "SET", "notify-keyspace-events", "KA")
	k := &f.board.opening.Load().keys
	one, other := f.store.listen(t.Context(), k), f.store.listen(t.Context(), k)
	defer other.stop()
	one.stop()
	testserver.Eventually(t, "it is named", func() bool {
		f.claim(numbered(1)) // nothing says when it is listened to
		other.mu.Lock()
		defer other.mu.Unlock()
		return len(other.ids) == 1
	})
}

// TestMissedMeanwhile checks that all claims are looked at again where Redis may have
// named some to nobody while they were searched for.
func TestMissedMeanwhile(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.sweep.notices.again()
	f.sweep.noticed = time.Time{}
	if err := f.sweep.claims(t.Context()); err != nil || !f.sweep.next.IsZero() {
		t.Errorf("claims are looked for again at %v, %v", f.sweep.next, err)
	}
	if err := f.sweep.claims(t.Context()); err != nil || f.sweep.next.IsZero() {
		t.Errorf("and again, though nothing was missed: %v", err)
	}
}

// TestTrackedWhenSlow checks that keys are tracked only while the search for claims is slow,
// and not at all where notifications are on, or the server has refused.
func TestTrackedWhenSlow(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.untracked()
	took := func(d time.Duration, want int) {
		t.Helper()
		f.sweep.took = d
		f.sweep.adjust(t.Context())
		testserver.Eventually(t, fmt.Sprintf("%d connections have keys tracked", want), func() bool { return f.trackers() == want })
		if on := want == 1; f.sweep.notices.on() != on {
			t.Errorf("after %v keys are tracked: %v", d, !on)
		}
	}
	took(slowTime, 0)
	took(slowTime+1, 1)
	took(slowTime/trackLess, 1)
	took(slowTime/trackLess-1, 0)
	took(time.Hour, 1)
	took(0, 0)
	f.sweep.notices.without.Store(true)
	took(time.Hour, 0)
	f.server.Command("CONFIG", "SET", "notify-keyspace-events", "KA")
	f.sweep.notices = f.store.listen(t.Context(), &f.board.opening.Load().keys)
	t.Cleanup(func() { f.sweep.notices.stop() })
	for _, d := range []time.Duration{time.Hour, 0} {
		f.sweep.took = d
		if f.sweep.adjust(t.Context()); !f.sweep.notices.on() || f.trackers() != 0 {
			t.Errorf("with notifications, after %v: %d connections have keys tracked", d, f.trackers())
		}
	}
}

// TestTrackedWhenCrowded checks that keys are tracked at once where there are so many that
// the jobs have to be gone through, and so many jobs that this will take long.
func TestTrackedWhenCrowded(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.untracked()
	f.server.Command("DEBUG", "POPULATE", "100000")
	const quick = int64(SweepRate * slowTime / time.Second)
	for _, c := range []struct {
		jobs int64
		want bool
	}{{quick, false}, {100_000, false}, {quick + 1, true}} {
		if err := f.sweep.fewKeys(t.Context(), c.jobs); err != nil || f.sweep.notices.on() != c.want {
			t.Errorf("with %d jobs keys are tracked: %v, %v; want %v", c.jobs, f.sweep.notices.on(), err, c.want)
		}
	}
	f.sweep.notices.stop()
}

// TestTrackingRights checks that the rights that docs/redis.md names are enough.
func TestTrackingRights(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, ok := strings.Cut(string(page), "\nuser boardd on >SECRET ")
	rules, _, _ = strings.Cut(rules, "\n")
	if !ok {
		t.Fatal("docs/redis.md gives no ACL")
	}
	server := testserver.StartRedis(t, testserver.RedisOptions{Users: []string{"boardd on >SECRET " + strings.ReplaceAll(rules, "octavia_jobboard", "b")}})
	d, err := Open(t.Context(), driver.Config{Settings: []byte(`{"address":"` + server.Addr + `","username":"boardd","password":"SECRET"}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	k, n := keysOf("b:"), newNotices()
	d.(*Store).track(t.Context(), &k, n)
	t.Cleanup(func() { n.stop() })
	if !n.on() {
		t.Errorf("the server refuses")
	}
}
