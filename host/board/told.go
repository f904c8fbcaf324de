package board

import (
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// GatherFor is how long an event may wait until those who watch a board are told of it,
// together with what comes meanwhile. It waits so long only where so many watch that
// telling them takes as long.
const GatherFor = 10 * time.Millisecond

// What is gathered for: a turn of a watcher's stream takes about turnTime of a
// processor, whatever the number of its events. What could be gathered in less than
// worthGathering is told at once.
const (
	turnTime       = 20 * time.Microsecond
	worthGathering = time.Millisecond
)

// gatherTime is how long events are gathered for so many streams.
func gatherTime(streams int) time.Duration {
	if wait := min(time.Duration(streams)*turnTime, GatherFor); wait >= worthGathering {
		return wait
	}
	return 0
}

// round is how streams are told of events: all of them at the same time, of all that
// came since the last time. All of it is guarded by hub.mu.
type round struct {
	streams   int
	end       uint64        // number of the first item that they are not told of yet
	gathering bool          // they will be, when the time is up
	called    chan struct{} // closed at the next time; nil if nobody waits
}

// bell is what a stream waits for. The caller holds hub.mu.
func (r *round) bell() <-chan struct{} {
	if r.called == nil {
		r.called = make(chan struct{})
	}
	return r.called
}

// enter counts a stream; leave must be called when it ends.
func (h *hub) enter() (leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.round.streams++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.round.streams--
	}
}

// gather tells the streams of what is new, at once or after a while, in which no more
// may come than they read at a time. h.mu is held.
func (h *hub) gather() {
	wait := gatherTime(h.round.streams)
	if wait == 0 || h.next-h.round.end >= sharedEvents {
		h.callAll()
		return
	}
	if h.round.gathering {
		return
	}
	h.round.gathering = true
	time.AfterFunc(wait, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.round.gathering = false
		h.callAll()
	})
}

// callAll tells the streams of everything. h.mu is held.
func (h *hub) callAll() {
	h.round.end = h.next
	if h.round.called != nil {
		close(h.round.called)
		h.round.called = nil
	}
}

// sharedEvents is for how many of its last events the hub keeps what those who watch
// share. For a watcher that is further behind it is made anew.
const sharedEvents = ringSize / 4

// Told is an event that all who watch a board share. Each of its encodings for the
// network is made once for all of them.
type Told struct {
	once  sync.Once
	event job.Event

	mu    sync.Mutex
	forms [ToldForms][]byte
}

// ToldForms is how many encodings of an event can be kept.
const ToldForms = 4

// Event returns the event, which nobody may change.
func (t *Told) Event() job.Event { return t.event }

// Form returns the event's encoding number form, which is below ToldForms. write makes it
// for the first caller; all get the same bytes, which nobody may change.
func (t *Told) Form(form int, write func(job.Event) ([]byte, error)) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forms[form] != nil {
		return t.forms[form], nil
	}
	written, err := write(t.event)
	if err == nil {
		t.forms[form] = written
	}
	return written, err
}

// told shows an item to those who watch.
func (b *Board) told(it *item, generation uint64) *Told {
	t := it.told
	if t == nil {
		t = &Told{}
	}
	t.once.Do(func() { t.event = b.eventOf(it, generation) })
	return t
}

// toldOf wraps an event that is not shared.
func toldOf(event job.Event) *Told {
	t := &Told{event: event}
	t.once.Do(func() {})
	return t
}
