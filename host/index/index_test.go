package index

import (
	"context"
	"encoding/binary"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func id(n int) job.ID {
	var id job.ID
	binary.BigEndian.PutUint64(id[:], uint64(n)*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// entry returns the n-th job, posted at position n.
func entry(n int) *Entry {
	return &Entry{
		ID: id(n), Name: "name" + strconv.Itoa(n%7), CreatedAt: epoch.Add(time.Duration(n) * time.Millisecond),
		ModifiedAt: epoch, Sequence: uint64(n), Version: 1, Position: driver.Position(n),
		Labels: []job.Label{{Key: "n", Value: strconv.Itoa(n % 10)}},
	}
}

// at returns the entry as of another position, with another version.
func at(e *Entry, position int) *Entry {
	c := *e
	c.Position, c.Version = driver.Position(position), c.Version+1
	return &c
}

func claimedBy(e *Entry, position int, owner string, lease time.Duration) *Entry {
	c := at(e, position)
	c.Attempt++
	c.Claim = &Claim{Owner: owner, Token: job.Token{Epoch: uint64(position)}, Ends: time.Now().Add(lease)}
	return c
}

func numbers(entries []*Entry) []int {
	var ns []int
	for _, e := range entries {
		ns = append(ns, int(binary.BigEndian.Uint64(e.ID[8:])))
	}
	return ns
}

func everyone(t testing.TB, ix *Index) *Class {
	t.Helper()
	c, err := ix.Class(context.Background(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// labelled returns a judge that allows the jobs with the given value of n.
func labelled(value int) Judge {
	want := strconv.Itoa(value)
	return func(_ context.Context, entries []*Entry, allowed []bool) error {
		for i, e := range entries {
			allowed[i] = e.Labels[0].Value == want
		}
		return nil
	}
}

func TestPutGet(t *testing.T) {
	t.Parallel()
	ix := New()
	e := entry(3)
	e.NotBefore = epoch.Add(24 * 365 * 100 * time.Hour)
	e.Labels = append(e.Labels, job.Label{Key: "z", Value: ""}, job.Label{}, job.Label{Key: "b"}, job.Label{Key: "c"})
	e.Status, e.Extra = []byte("s"), []byte("x")
	e.Claim = &Claim{Owner: "w", Foreign: true, Since: epoch}
	for range 2 {
		if want := true; ix.Put(e) != want {
			t.Fatal("news was not taken")
		}
		got, ok := ix.Get(e.ID)
		if !ok {
			t.Fatal("not found")
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("kept otherwise (-put +got):\n%s", diff)
		}
		if ix.Put(e) {
			t.Error("the same news was taken twice")
		}
		e = entry(3)
		e.Position = 4
	}
	if _, ok := ix.Get(id(5)); ok {
		t.Error("a job that was never put is known")
	}
}

func TestTakeInOrder(t *testing.T) {
	t.Parallel()
	ix := New()
	for _, n := range []int{5, 1, 4, 2, 3} {
		e := entry(n)
		if n == 4 {
			e.Priority = job.High
		}
		ix.Put(e)
	}
	c := everyone(t, ix)
	got := ix.Take(context.Background(), c, 2)
	if diff := cmp.Diff([]int{4, 1}, numbers(got)); diff != "" {
		t.Error(diff)
	}
	if n := ix.Count().Ready; n != 5 {
		t.Errorf("ready: %d, want 5 with the reserved ones", n)
	}
	ix.Return(got[1].ID)
	ix.Put(claimedBy(got[0], 10, "w", time.Minute))
	if diff := cmp.Diff([]int{1, 2, 3, 5}, numbers(ix.Take(context.Background(), c, 9))); diff != "" {
		t.Error(diff)
	}
	p := ix.Page(PageRequest{Claimed: true, Unclaimed: true, Limit: 3})
	if diff := cmp.Diff([]int{4, 1, 2}, numbers(p.Entries)); diff != "" || !p.More {
		t.Error(diff, p.More)
	}
	p = ix.Page(PageRequest{After: &p.Last, Claimed: true, Unclaimed: true, Limit: 3})
	if diff := cmp.Diff([]int{3, 5}, numbers(p.Entries)); diff != "" || p.More {
		t.Error(diff, p.More)
	}
}

func TestClassSeesItsOwn(t *testing.T) {
	t.Parallel()
	ix := New()
	for n := 1; n <= 5000; n++ {
		ix.Put(entry(n))
	}
	c, err := ix.Class(t.Context(), "three", labelled(3))
	if err != nil {
		t.Fatal(err)
	}
	ix.Put(entry(5003))
	if diff := cmp.Diff([]int{3, 13}, numbers(ix.Take(context.Background(), c, 2))); diff != "" {
		t.Error(diff)
	}
	if got := len(ix.Take(context.Background(), c, 1000)); got != 499 {
		t.Errorf("%d more, want 499", got)
	}
	if rank, ok := ix.Rank(id(21), everyone(t, ix)); !ok || rank != 18 {
		t.Errorf("rank %d %v, want 18", rank, ok)
	}
}

func TestOldestReady(t *testing.T) {
	t.Parallel()
	ix := New()
	if got := ix.Count(); got != (Counts{}) {
		t.Errorf("%+v of nothing", got)
	}
	if got := ix.OldestOpen(); !got.IsZero() {
		t.Errorf("the oldest of none is of %v", got)
	}
	for n := 1; n <= 3*ageGroups; n++ {
		ix.Put(entry(1000 + n))
	}
	old := entry(1)
	old.Priority = job.VeryLow
	ix.Put(old)
	if got := ix.Count().OldestReadyAt; !got.Equal(old.CreatedAt) {
		t.Errorf("oldest %v, want %v", got, old.CreatedAt)
	}
	ix.Put(claimedBy(old, 1<<20, "w", time.Hour))
	if got := ix.OldestOpen(); !got.Equal(old.CreatedAt) {
		t.Errorf("the oldest that is open is of %v, want %v", got, old.CreatedAt)
	}
	if got, want := ix.Count().OldestReadyAt, entry(1001).CreatedAt; !got.Equal(want) {
		t.Errorf("oldest %v, want %v", got, want)
	}
}

// TestReadySince: a ready job waits since it could be claimed, and of all ready ones that counts
// which could be for the longest time, wherever it stands in the order.
func TestReadySince(t *testing.T) {
	t.Parallel()
	after := func(d time.Duration) time.Time { return epoch.Add(d) }
	changed := func(e *Entry, to time.Duration) *Entry {
		c := at(e, int(e.Position)+1000)
		c.ModifiedAt = after(to)
		return c
	}
	givenBack := func(e *Entry, to time.Duration) []*Entry {
		held := claimedBy(e, int(e.Position)+1000, "w", time.Hour)
		c := changed(held, to)
		c.Claim = nil
		return []*Entry{e, held, c}
	}
	later := entry(1)
	later.NotBefore = after(time.Hour)
	held := entry(2)
	held.Held = true
	released := changed(held, time.Hour)
	released.Held = false
	urgent, early := changed(entry(3), time.Hour), changed(entry(3), time.Hour)
	urgent.Status, urgent.Priority = []byte{1}, job.VeryHigh
	early.Status, early.NotBefore = []byte{1}, after(time.Minute)
	unknown := changed(entry(3), time.Hour)
	unknown.Version++
	unknown.Status = urgent.Status
	var many []*Entry
	for n := 1; n < ageMore; n++ {
		many = append(many, givenBack(entry(n), time.Hour+time.Duration(n)*time.Minute)...)
	}
	low := entry(5)
	low.Priority = job.Low
	for name, test := range map[string]struct {
		told []*Entry
		want time.Time
	}{
		"delayed":                           {[]*Entry{later}, later.NotBefore},
		"held back":                         {[]*Entry{held, released}, released.ModifiedAt},
		"given back":                        {givenBack(entry(3), time.Hour), after(time.Hour)},
		"given back, and another waits":     {append(givenBack(entry(3), time.Hour), entry(4)), entry(4).CreatedAt},
		"given back, and a lower one waits": {append(givenBack(entry(3), time.Hour), low), low.CreatedAt},
		"many were given back":              {append(many, entry(2*ageMore)), entry(2 * ageMore).CreatedAt},
		"another priority":                  {[]*Entry{entry(3), urgent}, entry(3).CreatedAt},
		"another priority, twice":           {[]*Entry{entry(3), urgent, changed(urgent, 2*time.Hour)}, entry(3).CreatedAt},
		"another time that has passed":      {[]*Entry{entry(3), early}, entry(3).CreatedAt},
		"more than one change":              {[]*Entry{entry(3), unknown}, after(time.Hour)},
		"changed and then given back":       {append([]*Entry{entry(3)}, givenBack(urgent, 2*time.Hour)...), after(2 * time.Hour)},
	} {
		ix := New()
		for _, e := range test.told {
			ix.Put(e)
		}
		if got := ix.Count().OldestReadyAt; !got.Equal(test.want) {
			t.Errorf("%s: since %v, want %v", name, got, test.want)
		}
		ix.Take(t.Context(), everyone(t, ix), len(test.told))
		if got := ix.Count().OldestReadyAt; !got.Equal(test.want) {
			t.Errorf("%s, and reserved: since %v, want %v", name, got, test.want)
		}
		ix.check(t)
	}
}

// TestMemoryIsLetGo has a board that was large once.
func TestMemoryIsLetGo(t *testing.T) {
	t.Parallel()
	ix := New()
	const n = 20 * slabSize
	for i := 1; i <= n; i++ {
		ix.Put(entry(i))
	}
	for i := 1; i <= n; i++ {
		ix.Remove(id(i), n+1)
	}
	ix.Forget(n + 1)
	ix.check(t)
	kept := 0
	for _, c := range ix.rows.chunks {
		if c != nil {
			kept++
		}
	}
	if kept > 2 || len(ix.removed.queue) != 0 || len(ix.removed.at) != 0 {
		t.Errorf("kept: %d chunks of rows, %d and %d of removed jobs", kept, len(ix.removed.queue), len(ix.removed.at))
	}
}
