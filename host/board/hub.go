package board

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// ringSize is how many events a watcher may fall behind before it has to resync. A ring has
// room for firstRing at first, since most boards are small.
const (
	ringSize  = 1024
	firstRing = 8
)

// item is an event as the hub keeps it. It becomes a job.Event when somebody
// reads it.
type item struct {
	event    job.EventType
	id       job.ID
	position driver.Position
	at       time.Time
	reason   string
	owner    string
	record   *driver.Record // as the change had it; without more of the posting than its id if there is an entry
	entry    *index.Entry   // of a sparse record: the job after the change, or as it last was on the board
	told     *Told          // what all who read it share; nil: nobody has read it, or it is long past
}

// hub keeps the last events of the board for all watchers together: each reads
// at its own pace, and one that falls behind costs no memory.
type hub struct {
	mu         sync.Mutex
	ring       []item // see at; up to ringSize
	next       uint64 // number of the next item
	first      uint64 // items before this one do not follow on those after it
	generation uint64
	floor      driver.Position // everything after it, up to reported, is in the ring from first on
	reported   driver.Position
	changed    chan struct{} // closed at the next publish; nil if nobody waits
	round      round         // for those who are told of events together

	listeners map[string]map[*listener]struct{} // by the owner whose events they want
}

func newHub() *hub { return &hub{ring: make([]item, firstRing)} }

// at returns where item number n is, or will be. The caller holds h.mu.
func (h *hub) at(n uint64) *item { return &h.ring[n%uint64(len(h.ring))] }

// room makes room for another item: that of the oldest one if there are as many as may be.
// The caller holds h.mu.
func (h *hub) room() {
	switch {
	case h.next-h.first < uint64(len(h.ring)):
	case len(h.ring) < ringSize:
		larger := make([]item, 2*len(h.ring))
		for n := h.first; n < h.next; n++ {
			larger[n%uint64(len(larger))] = *h.at(n)
		}
		h.ring = larger
	default:
		h.floor = h.at(h.first).position
		h.first++
	}
}

// restart says that the board was read anew: what happened between the last
// item and this position is not known one by one.
func (h *hub) restart(generation uint64, position driver.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first, h.generation, h.floor, h.reported = h.next, generation, position, position
	clear(h.ring)
	h.loseAll()
	h.announce()
	h.callAll()
}

// publish adds items in the order of their positions.
func (h *hub) publish(items []item, reported driver.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range items {
		if it.position <= h.floor {
			continue
		}
		h.room()
		at := h.at(h.next)
		*at = it
		if h.next-h.first >= sharedEvents {
			h.at(h.next - sharedEvents).told = nil
		}
		h.next++
		h.hand(at)
	}
	h.reported = max(h.reported, reported)
	if len(items) > 0 {
		h.announce()
		h.gather()
	}
}

// announce wakes those who wait for more. The caller holds h.mu.
func (h *hub) announce() {
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// now returns the present generation and the position up to which everything is
// in the ring.
func (h *hub) now() cursor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return cursor{h.generation, h.reported}
}

// reading is what read gives.
type reading struct {
	items   []item
	at      cursor          // where to go on
	lost    bool            // the events after the asked cursor are not in the ring
	changed <-chan struct{} // closed when there is more; nil unless items is empty
}

// read returns up to most items after a cursor. With gathered it gives only those that
// everybody is told of by now.
func (h *hub) read(after cursor, most int, gathered bool) reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after.generation != h.generation || after.position < h.floor {
		return reading{at: cursor{h.generation, h.reported}, lost: true}
	}
	r, end := reading{at: after}, h.next
	if gathered {
		end = h.round.end
	}
	for n := h.search(after.position); n < end; n++ {
		it := h.at(n)
		if len(r.items) >= most && it.position != r.items[len(r.items)-1].position {
			break // several changes of other programs may have one position
		}
		if it.told == nil && n+sharedEvents >= h.next {
			it.told = &Told{}
		}
		r.items = append(r.items, *it)
	}
	if len(r.items) > 0 {
		r.at.position = r.items[len(r.items)-1].position
		return r
	}
	if end == h.next {
		r.at.position = max(after.position, h.reported)
	}
	if gathered {
		r.changed = h.round.bell()
		return r
	}
	if h.changed == nil {
		h.changed = make(chan struct{})
	}
	r.changed = h.changed
	return r
}

// search returns the number of the first item after a position. The caller holds h.mu.
func (h *hub) search(after driver.Position) uint64 {
	low, high := h.first, h.next
	for low < high {
		mid := low + (high-low)/2
		if h.at(mid).position > after {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low
}

// eventOf shows an item to a client.
func (b *Board) eventOf(it *item, generation uint64) job.Event {
	j, r := &job.Job{ID: it.id}, it.record
	switch {
	case it.entry != nil:
		j = jobOf(it.entry)
	case r != nil && r.Posting.Name != "":
		j = jobOf(b.entryOf(r, it.at))
	}
	if r != nil && !isOpen(r.State) {
		j.State, j.Outcome, j.EndedAt = r.State, r.Outcome, record.Shown(r.EndedAt)
		j.Owner, j.LeaseExpiresAt, j.NotBefore, j.Held = "", time.Time{}, time.Time{}, false
		showStatus(j, r.Status)
	}
	if it.owner != "" && (j.Owner == "" || it.event == job.ClaimedEvent) {
		j.Owner = it.owner // who held it, or claimed it then: a store may show a later record
	}
	return job.Event{
		Type: it.event, Job: j, At: it.at, Reason: it.reason,
		Cursor: cursor{generation, it.position}.String(), CancelRequested: it.cancelRequested(), Exhausted: exhausted(r),
	}
}

// cancelRequested reports whether the job's worker was asked to stop.
func (it *item) cancelRequested() bool {
	var encoded []byte
	switch {
	case it.record != nil && isOpen(it.record.State):
		encoded = it.record.Status
	case it.record == nil && it.entry != nil:
		encoded = it.entry.Status
	}
	s, err := record.ReadStatus(encoded)
	return err == nil && s.Canceling()
}

// holder is who holds the job, or held it until the event.
func (it *item) holder() string {
	switch {
	case it.owner != "":
		return it.owner
	case it.record != nil && it.record.Holder != nil:
		return it.record.Holder.Owner
	case it.entry != nil && it.entry.Claim != nil:
		return it.entry.Claim.Owner
	}
	return ""
}

// waitChange blocks until there may be more in the ring, the time is up or ctx
// ends.
func waitChange(ctx context.Context, changed <-chan struct{}, timer <-chan time.Time) (late bool, err error) {
	defer idle(ctx)()
	select {
	case <-changed:
		return false, nil
	case <-timer:
		return true, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}
