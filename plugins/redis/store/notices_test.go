package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/job"
)

// TestNotices checks when jobs that Redis named are looked at: soon, unless what named them
// was our own change.
func TestNotices(t *testing.T) {
	t.Parallel()
	id := numbered(1)
	ours := func(kind job.EventType, state job.State) []event { return []event{{id: id, kind: kind, state: state}} }
	for name, c := range map[string]struct {
		does func(n *notices)
		want time.Duration // after which the job is looked at; below 0: never
	}{
		"it changed":                 {func(n *notices) { n.add(id.String()) }, noticeTime},
		"it changed twice":           {func(n *notices) { n.add(id.String()); n.add(id.String()) }, noticeTime},
		"we claimed it":              {func(n *notices) { n.add(id.String()); n.follow(ours(job.ClaimedEvent, job.Claimed)) }, noticeLater},
		"we ended it":                {func(n *notices) { n.add(id.String()); n.follow(ours(job.ConsumedEvent, job.Complete)) }, -1},
		"another program claimed it": {func(n *notices) { n.add(id.String()); n.follow(ours(job.ForeignChange, job.Claimed)) }, noticeTime},
		"we changed it before that":  {func(n *notices) { n.follow(ours(job.ClaimedEvent, job.Claimed)); n.add(id.String()) }, noticeTime},
		"we changed it again and again": {func(n *notices) {
			n.add(id.String())
			for range 5 {
				n.follow(ours(job.ClaimedEvent, job.Claimed))
				n.add(id.String())
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
		n := newNotices()
		for i := range noticesMost {
			n.add(numbered(i).String())
		}
		if n.over {
			t.Errorf("%d are too many", noticesMost)
		}
		n.add(numbered(0).String()) // it waits already
		if n.over {
			t.Errorf("one that waits already is one too many")
		}
		n.add(numbered(noticesMost).String())
		time.Sleep(noticeTime)
		if ids, over := n.take(); len(ids) != noticesOnce || !over {
			t.Errorf("one more than %d: %d are looked at, want %d; too many: %v", noticesMost, len(ids), noticesOnce, over)
		}
	})
}

// TestOwnerOf checks which board and job a key belongs to.
func TestOwnerOf(t *testing.T) {
	t.Parallel()
	k, id := keysOf("n:m:"), numbered(1).String()
	none := keysOf("")
	for _, c := range []struct {
		key, prefix string
		ok          bool
	}{
		{k.owner(id), "n:m:", true},
		{k.modified(id), "n:m:", true},
		{none.owner(id), "", true},
		{k.attached(id), "", false},
		{k.head, "", false},
		{"n:m:" + strings.ToUpper(id) + ownedSuffix, "", false},
		{id[1:] + ownedSuffix, "", false},
		{ownedSuffix, "", false},
		{"", "", false},
	} {
		prefix, got, ok := ownerOf(c.key)
		if ok != c.ok || ok && (prefix != c.prefix || got != id) {
			t.Errorf("%q is a key of job %q of the board at %q: %v", c.key, got, prefix, ok)
		}
	}
}

// named returns the notices of the field's board, with notifications on.
func (f *field) named() *notices {
	f.Helper()
	f.server.Command("CONFIG", "SET", "notify-keyspace-events", "Kg$x")
	n := f.store.listen(f.Context(), &f.board.opening.Load().keys)
	f.Cleanup(n.stop)
	testserver.Eventually(f, "Redis names jobs", n.on)
	n.take() // that everything is to be looked at
	return n
}

// waits returns whether a job was named.
func (n *notices) waits(id job.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, ok := n.ids[id.String()]
	return ok
}

// TestNamed has Redis name jobs over a connection that is lost, and checks that an ACL of
// before, with a pattern for each namespace, has claims searched for as if notifications
// were off.
func TestNamed(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	n := f.named()
	claim := func(id job.ID) {
		t.Helper()
		f.claim(id)
		testserver.Eventually(t, fmt.Sprintf("job %v is named", id), func() bool { return n.waits(id) })
	}
	claim(numbered(1))
	f.server.Command("CLIENT", "KILL", "TYPE", "pubsub")
	testserver.Eventually(t, "everything is looked at again, since the connection was lost", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.over
	})
	claim(numbered(2))
	f.server.Command("ACL", "SETUSER", "default", "resetchannels", "&*boardd:wake", "&__keyspace@0__:b:*.owned", "&__keyspace@0__:b:*.last_modified")
	other := openStore(t, f.server.Addr)
	t.Cleanup(func() { _ = other.Close() })
	deaf := other.listen(t.Context(), &f.board.opening.Load().keys)
	t.Cleanup(deaf.stop)
	woken, stop := other.wakes.watch("b:boardd:wake", "")
	t.Cleanup(stop)
	<-woken // Redis has answered to the patterns before it did to this
	if deaf.on() || other.wakes.namesAll() || !other.wakes.hears("b:boardd:wake") {
		t.Errorf("notices are on though their channels may not be heard")
	}
}

// TestManyAreNamed has many boards listen over one connection and two patterns, each to its own
// jobs.
func TestManyAreNamed(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.named()
	var all []*notices
	var boards []keys
	for i := range 100 {
		boards = append(boards, keysOf(fmt.Sprintf("board %d:", i)))
		all = append(all, f.store.listen(t.Context(), &boards[i]))
		t.Cleanup(all[i].stop)
	}
	if got := f.server.Command("PUBSUB", "NUMPAT"); strings.TrimSpace(got) != ":2" {
		t.Errorf("Redis compares what is published with %s patterns, want 2", got)
	}
	for i := range all {
		if err := f.client.Set(t.Context(), boards[i].owner(numbered(i).String()), "py", 0).Err(); err != nil {
			t.Fatal(err)
		}
		testserver.Eventually(t, fmt.Sprintf("job %d is named to its board", i), func() bool { return all[i].waits(numbered(i)) })
	}
	for i := range all {
		all[i].mu.Lock()
		if len(all[i].ids) != 1 {
			t.Errorf("board %d was told of %d jobs, want its own", i, len(all[i].ids))
		}
		all[i].mu.Unlock()
	}
}

func (f *field) claim(id job.ID) {
	f.Helper()
	k := &f.board.opening.Load().keys
	if err := f.client.Set(f.Context(), k.owner(id.String()), "py", 0).Err(); err != nil {
		f.Fatal(err)
	}
}

// TestNamedClaim checks that a claim of another program gets into our records by its
// name alone, without a search.
func TestNamedClaim(t *testing.T) {
	t.Parallel()
	f := newField(t, `{}`)
	f.sweep.notices = f.named()
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
