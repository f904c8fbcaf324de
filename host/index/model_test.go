package index

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// check proves that everything the index keeps twice agrees. Nothing may be
// under way meanwhile.
func (ix *Index) check(t testing.TB) {
	t.Helper()
	ix.mu.Lock()
	defer ix.mu.Unlock()
	var count [claimed + 1]int
	names, labels := map[uint32]uint32{}, map[uint32]uint32{}
	timed := 0
	rows := 0
	for h := range ix.rows.end() {
		r := ix.rows.peek(h)
		if r == nil || r.place == vacant {
			continue
		}
		rows++
		count[r.place]++
		names[r.name]++
		for _, l := range r.labels {
			labels[l]++
		}
		if known, _ := ix.ids.get(r.ID); known != h || !ix.all.has(h) {
			t.Fatalf("row %d: lost", h)
		}
		if ix.ready.has(h) != (r.place == ready) {
			t.Fatalf("row %d: place %d, ready set %v", h, r.place, ix.ready.has(h))
		}
		if r.timer != 0 {
			timed++
			timers := ix.delays
			if r.place == claimed {
				timers = ix.leases
			}
			if timers.heap.items[r.timer-1].row != h {
				t.Fatalf("row %d: another one is at its place in the heap", h)
			}
		}
		for c := range ix.classes.of(ix.classes.active) {
			if want := r.place == ready && r.verdicts.allows(c.slot); c.ready != nil && c.ready.has(h) != want {
				t.Fatalf("row %d: class %q: in its set %v, want %v", h, c.key, !want, want)
			}
			if c.state == built && r.place == ready && !r.verdicts.has(c.slot) {
				t.Fatalf("row %d: class %q has no verdict", h, c.key)
			}
		}
	}
	delete(names, 0)
	delete(labels, 0)
	for h, refs := range names {
		if got := ix.names.values.at(h).refs; got != refs {
			t.Fatalf("name %d: %d references, want %d", h, got, refs)
		}
	}
	for h, refs := range labels {
		if got := ix.labels.values.at(h).refs; got != refs {
			t.Fatalf("label %d: %d references, want %d", h, got, refs)
		}
	}
	ix.checkKeys(t)
	got := []int{
		ix.ids.len, ix.all.len(), ix.ready.len(), len(ix.reserved), int(ix.claimed),
		len(ix.delays.heap.items) + len(ix.leases.heap.items), len(ix.names.handles), len(ix.labels.handles),
		rows,
	}
	want := []int{
		ix.ids.len, ix.ids.len, count[ready], count[reserved], count[claimed],
		timed, len(names), len(labels), ix.ids.len,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("sizes (ids, all, ready, reserved, claimed, timers, names, labels, rows):\n%s", diff)
	}
	for c := range ix.classes.of(ix.classes.active) {
		for h := range members(c.ready) {
			if ix.rows.at(h).place != ready {
				t.Fatalf("class %q offers row %d, which is not ready", c.key, h)
			}
		}
	}
}

func (o *ordered) has(h uint32) bool { _, ok := o.tree.Get(h); return ok }

func members(o *ordered) map[uint32]bool {
	all := map[uint32]bool{}
	if o != nil {
		o.tree.Scan(func(h uint32) bool { all[h] = true; return true })
	}
	return all
}

// A model does what an Index does, with a slice and without any thought of speed.
type model struct {
	jobs    []*Entry
	held    map[job.ID]bool // reserved
	removed map[job.ID]driver.Position
	score   Scorer
	ranking *modelRanking
}

func (m *model) find(id job.ID) int {
	return slices.IndexFunc(m.jobs, func(e *Entry) bool { return e.ID == id })
}

func (m *model) put(e *Entry) bool {
	i := m.find(e.ID)
	if p, ok := m.removed[e.ID]; i < 0 && ok && e.Position <= p || i >= 0 && e.Position <= m.jobs[i].Position {
		return false
	}
	if m.ranking != nil && e.Claim != nil && (i < 0 || m.jobs[i].Claim == nil) {
		m.ranking.claimed(e.key())
	}
	if i >= 0 {
		m.jobs = slices.Delete(m.jobs, i, i+1)
	}
	delete(m.held, e.ID)
	m.jobs = append(m.jobs, e)
	slices.SortFunc(m.jobs, func(a, b *Entry) int {
		switch {
		case a.Order().Less(b.Order()):
			return -1
		case b.Order().Less(a.Order()):
			return 1
		}
		return 0
	})
	return true
}

func (m *model) remove(id job.ID, p driver.Position) bool {
	i := m.find(id)
	if q, ok := m.removed[id]; i < 0 && ok && p <= q || i >= 0 && p <= m.jobs[i].Position {
		return false
	}
	if i >= 0 {
		m.jobs = slices.Delete(m.jobs, i, i+1)
	}
	delete(m.held, id)
	m.removed[id] = p
	return true
}

func (m *model) ready(e *Entry) bool {
	return e.Claim == nil && !e.Held && !e.NotBefore.After(time.Now())
}

func (m *model) free(allow func(*Entry) bool) []*Entry {
	var free []*Entry
	for _, e := range m.jobs {
		if m.ready(e) && !m.held[e.ID] && allow(e) {
			free = append(free, e)
		}
	}
	return free
}

// take reserves the best.
func (m *model) take(allow func(*Entry) bool, n int) (taken []*Entry) {
	for ; n > 0; n-- {
		free := m.free(allow)
		if len(free) == 0 {
			break
		}
		best := free[0]
		if m.ranking != nil {
			if best = m.best(free); best == nil {
				break
			}
		}
		m.held[best.ID] = true
		taken = append(taken, best)
	}
	return taken
}

// readyAt returns since when a ready job could be claimed, where no change since leaves it ready.
func readyAt(e *Entry) time.Time {
	since := e.CreatedAt
	for _, at := range []time.Time{e.ModifiedAt, e.NotBefore} {
		if at.After(since) {
			since = at
		}
	}
	return since
}

func (m *model) count() Counts {
	var c Counts
	for _, e := range m.jobs {
		switch {
		case e.Claim != nil:
			c.Claimed++
		case m.ready(e):
			c.Ready++
			if since := readyAt(e); c.OldestReadyAt.IsZero() || since.Before(c.OldestReadyAt) {
				c.OldestReadyAt = since
			}
		default:
			c.Delayed++
		}
	}
	return c
}

// A trial drives an index and a model with the same random steps.
type trial struct {
	*testing.T
	rnd      *rand.Rand
	ix       *Index
	m        *model
	position int
	keys     []string
}

const trialJobs = 60

func (tr *trial) entry() *Entry {
	e := entry(1 + tr.rnd.IntN(trialJobs))
	e.Labels = []job.Label{{Key: "n", Value: strconv.Itoa(tr.rnd.IntN(3))}}
	for range tr.rnd.IntN(6) {
		e.Labels = append(e.Labels, job.Label{Key: "k", Value: strconv.Itoa(tr.rnd.IntN(9))})
	}
	e.Priority = job.Priority(tr.rnd.IntN(3) - 1)
	e.Score = int64(tr.rnd.IntN(2))
	if tr.m.score != nil {
		tr.m.score([]*Entry{e})
	}
	tr.position++
	e.Position = driver.Position(max(1, tr.position-tr.rnd.IntN(3)*tr.rnd.IntN(5)))
	e.Version = uint64(e.Position)
	switch tr.rnd.IntN(8) {
	case 0:
		e.NotBefore = time.Now().Add(time.Duration(tr.rnd.IntN(20)-5) * time.Second).UTC()
	case 1:
		e.Held = true
	case 2, 3:
		e.Claim = &Claim{Owner: "w", Ends: time.Now().Add(time.Duration(tr.rnd.IntN(20)) * time.Second)}
		e.Attempt = int32(tr.rnd.IntN(3))
	case 4:
		e.Status = []byte{1}
	}
	return e
}

// allow is what the class of the key allows: labels, and for one of them also
// what changes with an attempt.
func allow(key string) func(*Entry) bool {
	if key == "" {
		return func(*Entry) bool { return true }
	}
	return func(e *Entry) bool { return e.Labels[0].Value == key[:1] && (len(key) == 1 || e.Attempt == 0) }
}

func (tr *trial) class(key string) *Class {
	tr.Helper()
	c, err := tr.ix.Class(tr.Context(), key, func(_ context.Context, entries []*Entry, allowed []bool) error {
		if tr.rnd.IntN(20) == 0 {
			return errors.New("sometimes it fails")
		}
		for i, e := range entries {
			allowed[i] = allow(key)(e)
		}
		return nil
	})
	for err != nil {
		c, err = tr.ix.Class(tr.Context(), key, nil)
	}
	return c
}

func (tr *trial) step() {
	tr.Helper()
	same := func(what string, want, got any) {
		tr.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			tr.Fatalf("%s (-model +index):\n%s", what, diff)
		}
	}
	key := tr.keys[tr.rnd.IntN(len(tr.keys))]
	switch tr.rnd.IntN(10) {
	case 0, 1, 2:
		e := tr.entry()
		same("put", tr.m.put(e), tr.ix.Put(e))
	case 3:
		var es []*Entry
		want := 0
		for range tr.rnd.IntN(9) {
			e := tr.entry()
			es = append(es, e)
			if tr.m.put(e) {
				want++
			}
		}
		same("put all", want, tr.ix.PutAll(es))
	case 4:
		e := tr.entry()
		same("remove", tr.m.remove(e.ID, e.Position), tr.ix.Remove(e.ID, e.Position))
	case 5, 6:
		n := tr.rnd.IntN(4)
		got := tr.ix.Take(context.Background(), tr.class(key), n)
		same("take", numbers(tr.m.take(allow(key), n)), numbers(got))
	case 7:
		e := tr.entry()
		delete(tr.m.held, e.ID)
		tr.ix.Return(e.ID)
	case 8:
		time.Sleep(time.Duration(tr.rnd.IntN(3)) * time.Second)
		tr.ix.Tick(time.Now())
	case 9:
		e := tr.entry()
		i := tr.m.find(e.ID)
		got, ok := tr.ix.Get(e.ID)
		same("known", i >= 0, ok)
		if i < 0 {
			break
		}
		want := *tr.m.jobs[i]
		if got.Group != nil {
			got.Group, want.Group = &Group{Key: got.key()}, &Group{Key: want.key()}
		}
		same("get", &want, got)
		free := tr.m.free(allow(key))
		if at := slices.IndexFunc(free, func(f *Entry) bool { return f.ID == e.ID }); at >= 0 {
			rank, _ := tr.ix.Rank(e.ID, tr.class(key))
			same("rank", int64(at), rank)
		}
	}
	same("count", tr.m.count(), tr.ix.Count())
}

func (tr *trial) pages() {
	tr.Helper()
	var got []*Entry
	req := PageRequest{Limit: 7, Visit: 5, Unclaimed: true, Match: func(e *Entry) bool { return e.Score == 0 }}
	for p := tr.ix.Page(req); ; p = tr.ix.Page(req) {
		got = append(got, p.Entries...)
		if !p.More {
			break
		}
		req.After = &p.Last
	}
	want := slices.DeleteFunc(slices.Clone(tr.m.jobs), func(e *Entry) bool { return e.Claim != nil || e.Score != 0 })
	if diff := cmp.Diff(numbers(want), numbers(got)); diff != "" {
		tr.Fatalf("pages (-model +index):\n%s", diff)
	}
}

func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			tr := &trial{
				T: t, rnd: rand.New(rand.NewPCG(seed, 1)), ix: New(), keys: []string{"", "0", "1", "2", "1!"},
				m: &model{held: map[job.ID]bool{}, removed: map[job.ID]driver.Position{}},
			}
			for i := range 400 {
				if i%100 == 50 && seed%2 == 1 {
					tr.rank()
				}
				tr.step()
			}
			for _, key := range tr.keys {
				tr.class(key)
			}
			tr.pages()
			tr.ix.check(t)
			for _, e := range slices.Clone(tr.m.jobs) {
				tr.ix.Remove(e.ID, 1<<40)
			}
			tr.ix.check(t)
			if tr.ix.ids.len != 0 {
				t.Error("jobs are left")
			}
		})
	}
}
