package orders

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// A host has an index, and the reference beside it is told the same.
type host struct {
	ix   *index.Index
	m    *reference
	flaw Flaw

	read   int      // lines of the log that the watch has brought
	late   []change // answers to its own ops that are still under way
	passed driver.Position

	sync     *index.Sync // nil: none is under way
	snapshot []*index.Entry
	from     driver.Position
}

func newHost(flaw Flaw) *host {
	h := &host{ix: index.New(), m: newReference(), flaw: flaw}
	h.order(0, 0)
	return h
}

// order sets another order.
func (h *host) order(score, rank uint8) {
	h.m.score, h.m.rank = scores[score], ranks[rank]
	var r *index.Ranking
	if h.m.rank != nil {
		r = &index.Ranking{By: "key", Rank: func(keys []policy.Key, out []policy.Rank) error {
			for i, k := range keys {
				out[i] = ranks[rank](k)
			}
			return nil
		}}
	}
	h.ix.SetScorer(h.m.score, r)
	if h.flaw != NotRescored {
		_ = h.ix.Rescore(context.Background()) // only the end of the context is an error
		_ = h.ix.Rerank(context.Background())
	}
	for _, k := range h.m.jobs {
		h.m.score([]*index.Entry{&k.Entry})
	}
	h.m.sort()
}

// hear tells the index of a change. own: this host made it, and amends what it knew.
func (h *host) hear(c change, own bool) error {
	if c.entry == nil {
		got := h.flaw == RemovalUntold && own
		if !got {
			got = h.ix.Remove(c.id, c.position)
		}
		if want := h.m.remove(c.id, c.position); got != want {
			return fmt.Errorf("the removal of job %d at position %d is news: %v, want %v", c.id[1], c.position, got, want)
		}
		return nil
	}
	if c.extended && own {
		e := c.entry
		if k := h.m.find(c.id); k == nil || k.Claim == nil || k.Claim.Token != e.Claim.Token {
			return nil // a board touches nothing but the claim that it extended
		}
		got, want := h.ix.Touch(c.id, c.position, e.Version, *e.Claim), h.m.touch(c.id, c.position, e.Version, *e.Claim)
		if got != want {
			return fmt.Errorf("the extension of job %d at position %d is news: %v, want %v", c.id[1], c.position, got, want)
		}
		return nil
	}
	e := *c.entry
	e.Amends = own && e.Version > 1
	return h.put(&e)
}

func (h *host) put(e *index.Entry) error {
	if known, want := h.ix.Known(e.ID, e.Position), !h.m.news(e.ID, e.Position); known != want && !e.Amends {
		return fmt.Errorf("job %d at position %d is known: %v, want %v", e.ID[1], e.Position, known, want)
	}
	told := *e
	switch {
	case h.flaw == AmendsLikeNews:
		told.Amends = false
	case h.flaw == PriorityUntold && h.m.find(e.ID) != nil:
		told.Priority = h.m.find(e.ID).Priority
	case h.flaw == PositionOfDelivery:
		told.Position += 2
	}
	if got, want := h.ix.Put(&told), h.m.put(e); got != want {
		return fmt.Errorf("job %d at position %d is news: %v, want %v", e.ID[1], e.Position, got, want)
	}
	return nil
}

func (h *host) class(name string) *index.Class {
	c, err := h.ix.Class(context.Background(), name, func(_ context.Context, entries []*index.Entry, allowed []bool) error {
		for i, e := range entries {
			allowed[i] = allows(name, e)
		}
		return nil
	})
	if err != nil {
		panic(err) // the judge has no reason to fail
	}
	return c
}

func (h *host) take(class string, n int) ([]*index.Entry, error) {
	got := h.ix.Take(context.Background(), h.class(class), n)
	want := h.m.take(class, n)
	if !slices.EqualFunc(got, want, func(e *index.Entry, id job.ID) bool { return e.ID == id }) {
		return nil, fmt.Errorf("%d of class %q are %v, want %v", n, class, numbers(got), want)
	}
	return got, nil
}

func numbers(list []*index.Entry) (n []int) {
	for _, e := range list {
		n = append(n, int(e.ID[1]))
	}
	return n
}

func (h *host) giveBack(id job.ID) {
	if h.flaw != ReservationKept {
		h.ix.Return(id)
	}
	if k := h.m.find(id); k != nil && k.place == reserved {
		k.place = ready
	}
}

func (h *host) tick() error {
	now := time.Now()
	var got []job.ID
	for _, l := range h.ix.Tick(now) {
		got = append(got, l.ID)
	}
	want := h.m.tick(now)
	slices.SortFunc(got, func(a, b job.ID) int { return int(a[1]) - int(b[1]) })
	slices.SortFunc(want, func(a, b job.ID) int { return int(a[1]) - int(b[1]) })
	if !slices.Equal(got, want) {
		return fmt.Errorf("the claims of %v have lapsed, want %v", got, want)
	}
	return nil
}

// begin begins a snapshot of the board as it is now.
func (h *host) begin(b *board, reset bool) {
	h.snapshot, h.from = nil, b.position
	for n := range jobs {
		if e := b.open[jobID(n)]; e != nil {
			h.snapshot = append(h.snapshot, e)
		}
	}
	if reset {
		h.read, h.late = len(b.log), nil // the watch begins behind the snapshot
		h.passed = 0
		h.sync = h.ix.Reset()
	} else {
		h.sync = h.ix.Sync()
	}
	h.m.begin(reset)
}

// bring brings up to n entries of the snapshot, and ends it with the last.
func (h *host) bring(b *board, n int) error {
	for ; n > 0 && len(h.snapshot) > 0; n-- {
		e := *h.snapshot[0]
		h.snapshot = h.snapshot[1:]
		if err := h.put(&e); err != nil {
			return err
		}
	}
	if len(h.snapshot) > 0 {
		return nil
	}
	position := h.from
	if h.flaw == SnapshotOfItsEnd {
		position = b.position
	}
	got, want := h.sync.End(position), h.m.end(h.from)
	h.sync = nil
	if got != want {
		return fmt.Errorf("a snapshot removed %d jobs, want %d", got, want)
	}
	return nil
}

// compare compares the index with the reference.
func (h *host) compare() error {
	if got, want := h.ix.Count(), h.m.counts(); got.Ready != want.Ready || got.Delayed != want.Delayed || got.Claimed != want.Claimed ||
		!got.OldestReadyAt.Equal(want.OldestReadyAt.Truncate(time.Microsecond)) {
		return fmt.Errorf("the counts are %+v, want %+v", got, want)
	}
	if at, due := h.ix.Next(); due != !h.m.next().IsZero() || due && !at.Equal(h.m.next()) {
		return fmt.Errorf("a tick is due at %v, %v: want %v", at, due, h.m.next())
	}
	page := h.ix.Page(index.PageRequest{Claimed: true, Unclaimed: true, Limit: 2 * jobs})
	if len(page.Entries) != len(h.m.jobs) {
		return fmt.Errorf("the jobs are %v, want %d of them", numbers(page.Entries), len(h.m.jobs))
	}
	for i, e := range page.Entries {
		if err := same(e, &h.m.jobs[i].Entry); err != nil {
			return err
		}
	}
	return nil
}

func same(e, want *index.Entry) error {
	switch {
	case e.ID != want.ID:
		return fmt.Errorf("job %d comes where job %d should", e.ID[1], want.ID[1])
	case e.Position != want.Position || e.Version != want.Version || e.Priority != want.Priority || e.Held != want.Held ||
		e.Attempt != want.Attempt || e.Score != want.Score || !e.NotBefore.Equal(want.NotBefore):
		return fmt.Errorf("job %d is %+v, want %+v", e.ID[1], *e, *want)
	case (e.Claim == nil) != (want.Claim == nil), e.Claim != nil && (e.Claim.Token != want.Claim.Token || !e.Claim.Ends.Equal(want.Claim.Ends)):
		return fmt.Errorf("job %d is claimed by %+v, want %+v", e.ID[1], e.Claim, want.Claim)
	}
	return nil
}
