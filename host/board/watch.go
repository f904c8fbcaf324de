package board

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// heartbeat is how long a board has to be still before its watchers get a Heartbeat.
const heartbeat = 15 * time.Second

// cursor is a place in a board's history that means the same on every host.
type cursor struct {
	generation uint64
	position   driver.Position
}

// String writes the cursor as clients see it.
func (c cursor) String() string {
	return strconv.FormatUint(c.generation, 10) + "." + strconv.FormatUint(uint64(c.position), 10)
}

func parseCursor(text string) (cursor, error) {
	left, right, ok := strings.Cut(text, ".")
	generation, err1 := strconv.ParseUint(left, 10, 64)
	position, err2 := strconv.ParseUint(right, 10, 64)
	c := cursor{generation, driver.Position(position)}
	if !ok || err1 != nil || err2 != nil || c.String() != text {
		return cursor{}, job.Errorf(job.Invalid, "from: %q is not a cursor of this board: want one that an event carried", shorten.To(text, 64))
	}
	return c, nil
}

// Watch streams what happens on the board after a cursor, or from now on if from
// is empty, until ctx ends. From now on begins with a Heartbeat: its cursor is the
// present, so that a stream that breaks before anything happened can be gone on
// with. A cursor that is too old, or of a place where the board never was, gives one
// Resync event, from whose cursor the stream goes on; a still board gives a Heartbeat
// every 15 s.
func (b *Board) Watch(ctx context.Context, from string) iter.Seq2[job.Event, error] {
	return oneByOne(b.watch(ctx, from, false))
}

// WatchTogether is Watch, or with an owner WatchOwner, for a board that many watch. Those
// who watch the whole board get an event at the same time, which may be GatherFor after it
// happened, and all share its encodings.
func (b *Board) WatchTogether(ctx context.Context, owner, from string) iter.Seq2[[]*Told, error] {
	if owner != "" {
		return b.watchOwner(ctx, owner, from)
	}
	return b.watch(ctx, from, true)
}

// oneByOne gives the events of a watch one after the other.
func oneByOne(watch iter.Seq2[[]*Told, error]) iter.Seq2[job.Event, error] {
	return func(yield func(job.Event, error) bool) {
		for list, err := range watch {
			if err != nil {
				yield(job.Event{}, err)
				return
			}
			for _, t := range list {
				if !yield(t.event, nil) {
					return
				}
			}
		}
	}
}

func (b *Board) watch(ctx context.Context, from string, together bool) iter.Seq2[[]*Told, error] {
	return func(yield func([]*Told, error) bool) {
		at, err := b.start(ctx, from)
		if err != nil {
			yield(nil, err)
			return
		}
		b.metrics.Watchers.Add(1)
		defer b.metrics.Watchers.Add(-1)
		if together {
			defer b.hub.enter()()
		}
		if from == "" && !yield([]*Told{heartbeatAt(at)}, nil) {
			return
		}
		timer := time.NewTimer(heartbeat)
		defer timer.Stop()
		for ctx.Err() == nil {
			events, next, changed, err := b.eventsAfter(ctx, at, ringSize/4, together)
			if err != nil {
				yield(nil, err)
				return
			}
			at = next
			if len(events) > 0 {
				if !yield(events, nil) {
					return
				}
				timer.Reset(heartbeat)
				continue
			}
			late, err := waitChange(ctx, changed, timer.C)
			if err != nil {
				return
			}
			if late {
				timer.Reset(heartbeat)
				if !yield([]*Told{heartbeatAt(at)}, nil) {
					return
				}
			}
		}
	}
}

// WatchOwner is Watch for the events of those jobs only that an owner holds, or
// held until then. Changes of other owners' jobs cost it nothing, so that every
// worker may have one. A cursor that is older than what this host has at hand gives
// a Resync event.
func (b *Board) WatchOwner(ctx context.Context, owner, from string) iter.Seq2[job.Event, error] {
	return oneByOne(b.watchOwner(ctx, owner, from))
}

func (b *Board) watchOwner(ctx context.Context, owner, from string) iter.Seq2[[]*Told, error] {
	return func(yield func([]*Told, error) bool) {
		at, err := b.start(ctx, from)
		if err != nil {
			yield(nil, err)
			return
		}
		b.metrics.Watchers.Add(1)
		defer b.metrics.Watchers.Add(-1)
		l := b.hub.listen(owner, at)
		defer b.hub.leave(l)
		if from == "" && !yield([]*Told{heartbeatAt(at)}, nil) {
			return
		}
		timer := time.NewTimer(heartbeat)
		defer timer.Stop()
		for late := false; ctx.Err() == nil; {
			items, at, lost := b.hub.drain(l)
			var events []*Told
			if lost {
				events = append(events, b.resync(at))
			}
			for i := range items {
				events = append(events, b.told(&items[i], at.generation))
			}
			if late && len(events) == 0 {
				events = append(events, heartbeatAt(at))
			}
			if len(events) > 0 && !yield(events, nil) {
				return
			}
			if late, err = waitChange(ctx, l.wake, timer.C); err != nil {
				return
			}
			timer.Reset(heartbeat)
		}
	}
}

func (b *Board) resync(at cursor) *Told {
	b.metrics.Overrun.Add(1)
	return toldOf(job.Event{Type: job.Resync, At: time.Now().UTC(), Cursor: at.String()})
}

func heartbeatAt(at cursor) *Told {
	return toldOf(job.Event{Type: job.Heartbeat, At: time.Now().UTC(), Cursor: at.String()})
}

// Events returns up to most events (0: 100) after the cursor from, and the cursor to
// go on from. If there is none yet, it waits for one; when the wait is over, there
// are no events.
func (b *Board) Events(ctx context.Context, from string, most int, wait time.Duration) ([]job.Event, string, error) {
	if most < 0 || most > MaxBatch {
		return nil, "", job.Errorf(job.Invalid, "max: want 1 to %d, got %d", MaxBatch, most)
	}
	if most == 0 {
		most = DefaultPage
	}
	waiting, cancel := waitUntil(ctx, wait)
	defer cancel()
	at, err := b.start(ctx, from)
	if err != nil {
		return nil, "", err
	}
	for {
		told, next, changed, err := b.eventsAfter(ctx, at, most, false)
		if err != nil {
			return nil, "", err
		}
		at = next
		if len(told) > 0 || wait <= 0 {
			var events []job.Event
			for _, t := range told {
				events = append(events, t.event)
			}
			return events, at.String(), nil
		}
		if _, err := waitChange(waiting, changed, nil); err != nil {
			return nil, at.String(), nil // the wait is over: an empty answer
		}
	}
}

// start returns the cursor that a watch begins at.
func (b *Board) start(ctx context.Context, from string) (cursor, error) {
	if _, err := b.serving(ctx); err != nil {
		return cursor{}, err
	}
	now := b.hub.now()
	if from == "" {
		return now, nil
	}
	at, err := parseCursor(from)
	if err == nil && at.generation == now.generation && at.position > now.position && b.neverThere(ctx, at.position) {
		at.generation = 0 // no board has it: whoever reads after it is told to resync
	}
	return at, err
}

// aheadTime bounds how long the driver may take to say that a board was never so far.
const aheadTime = time.Second

// neverThere reports whether a position that is ahead of this host is no place of the board:
// it was of another one, or made up. Of one that another host gave, which this one is about to
// reach, the driver says nothing.
func (b *Board) neverThere(ctx context.Context, position driver.Position) bool {
	ctx, cancel := context.WithTimeout(ctx, aheadTime)
	defer cancel()
	for changes, err := range b.driver.Watch(ctx, b.spec.Key, position) {
		return err == nil && changes.Resync
	}
	return false
}

// eventsAfter returns events after a cursor and where to go on: from the hub's
// ring, or where the cursor is older than that, from the driver. With no events
// it returns what to wait for.
func (b *Board) eventsAfter(ctx context.Context, at cursor, most int, together bool) ([]*Told, cursor, <-chan struct{}, error) {
	r := b.hub.read(at, most, together)
	if r.lost && at.generation == r.at.generation {
		events, next, err := b.catchUp(ctx, at, r.at)
		if err != nil || len(events) > 0 {
			return events, next, nil, err
		}
		if next.position > at.position { // nothing happened in between
			r = b.hub.read(next, most, together)
		}
	}
	if r.lost {
		return []*Told{b.resync(r.at)}, r.at, nil, nil
	}
	events := make([]*Told, len(r.items))
	for i := range r.items {
		events[i] = b.told(&r.items[i], r.at.generation)
	}
	return events, r.at, r.changed, nil
}

// catchUp asks the driver for what happened between two cursors, up to about
// ringSize events, and returns them with the cursor to go on from. If that equals
// from, the driver does not remember that far back.
func (b *Board) catchUp(ctx context.Context, from, to cursor) ([]*Told, cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, catchUpTime)
	defer cancel()
	var events []*Told
	next := from
	for changes, err := range b.driver.Watch(ctx, b.spec.Key, from.position) {
		if err != nil && ctx.Err() == nil {
			return nil, from, err
		}
		if err != nil || changes.Resync {
			break
		}
		before := next.position
		for i := range changes.List {
			c := &changes.List[i]
			if c.Position > before { // several may have one position
				events = append(events, b.told(b.itemOf(c), from.generation))
			}
			next.position = max(next.position, c.Position)
		}
		next.position = max(next.position, changes.Position)
		if next.position >= to.position || len(events) >= ringSize {
			break
		}
	}
	return events, next, nil
}

// catchUpTime bounds how long the driver may take to show the past.
const catchUpTime = 10 * time.Second

// itemOf makes an item of a change that is long past.
func (b *Board) itemOf(c *driver.Change) *item {
	it := &item{event: c.Event, id: c.Job, position: c.Position, at: c.At, reason: c.Reason, owner: c.Owner, record: c.Record}
	if c.Record != nil && !c.Sparse {
		return it
	}
	if e, ok := b.index.Get(c.Job); ok {
		if c.Record != nil && isOpen(c.Record.State) {
			b.renew(e, c.Record, ownPriority(e), time.Now())
		}
		it.entry = e
	}
	return it
}

// waitUntil returns the context of a call that may wait: it ends after the
// wait, cut to MaxWait, and a little before the call's own deadline, so that an
// empty answer still reaches the caller.
func waitUntil(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	end := time.Now().Add(min(max(wait, 0), MaxWait))
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if early := deadline.Add(-min(max(left/5, 20*time.Millisecond), time.Second)); early.Before(end) {
			end = early
		}
	}
	return context.WithDeadlineCause(ctx, end, errWaited)
}

// errWaited is the cause of a context whose wait is over.
var errWaited = errors.New("the wait is over")
