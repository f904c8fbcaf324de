package index

import (
	"container/list"
	"context"
	"slices"

	"github.com/boardd/boardd/sdk/job"
)

// A Waiter waits in a queue for jobs of its class.
type Waiter struct {
	// C gets a signal when a job of the class became ready, or was when the
	// Waiter was made. One job gives one signal, to whoever waits longest, so a
	// signal means: Take now. The Waiter keeps its place in the queue, and gets
	// another signal only after a Take that gave less than was asked for.
	C <-chan struct{}

	ix     *Index
	class  *Class
	c      chan struct{}
	ticket uint64
	spot   *list.Element // in one of the class's lists; nil: closed
	in     *list.List
	about  ref // the job of the last signal
}

// Waiter puts the caller into the queue of a class. It must be closed: best as soon as a Take
// gave something, before the store is asked, so that the next job wakes another.
func (ix *Index) Waiter(class *Class) *Waiter {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	c := ix.classes.current(class)
	w := &Waiter{ix: ix, class: c, c: make(chan struct{}, 1)}
	w.C = w.c
	ix.classes.ticket++
	w.ticket = ix.classes.ticket
	ix.classes.stats.Waiters++
	w.stand(c.idlers)
	ix.hurry(c.isDue())
	set := c.ready
	if set == nil {
		set = ix.ready // which of them the class may have is not known
	}
	if h, ok := set.min(); ok {
		w.signal(ref{h, ix.rows.at(h).turn})
	}
	return w
}

// stand puts the waiter into a list at the place that its ticket gives it. That
// is the end for a new one, and near the front for one that was there before.
func (w *Waiter) stand(l *list.List) {
	w.in = l
	if e := l.Back(); e == nil || ticketOf(e) < w.ticket {
		w.spot = l.PushBack(w)
		return
	}
	e := l.Front()
	for ticketOf(e) < w.ticket {
		e = e.Next()
	}
	w.spot = l.InsertBefore(w, e)
}

func ticketOf(e *list.Element) uint64 { return e.Value.(*Waiter).ticket }

func (w *Waiter) signal(about ref) {
	w.about = about
	w.in.Remove(w.spot)
	w.in = w.class.told
	w.spot = w.in.PushBack(w)
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// Close leaves the queue. A signal that was not received goes to the next waiter whose
// class may have the job. Closing twice is harmless.
func (w *Waiter) Close() { w.leave(false) }

// Decline is Close for a caller that received a signal and takes nothing: the signal goes
// to the next waiter, as if it had not been received.
func (w *Waiter) Decline() { w.leave(true) }

func (w *Waiter) leave(signaled bool) {
	ix := w.ix
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if w.spot == nil {
		return
	}
	w.in.Remove(w.spot)
	w.spot = nil
	ix.classes.stats.Waiters--
	select {
	case <-w.c:
		signaled = true
	default:
	}
	if !signaled {
		return
	}
	if r := ix.row(w.about); r != nil && r.place == ready {
		r.flags &^= woke
		ix.wake(w.about.row, r)
	}
}

// next returns the waiter that waits longest and has no signal, or nil.
func (c *Class) next() *Waiter {
	if c.stirred {
		c.stirred = false
		for e := c.told.Back(); e != nil; { // the youngest first, so that each finds its place near the front
			w := e.Value.(*Waiter)
			e = e.Prev()
			if len(w.c) == 0 {
				c.told.Remove(w.spot)
				w.stand(c.idlers)
			}
		}
	}
	if e := c.idlers.Front(); e != nil {
		return e.Value.(*Waiter)
	}
	return nil
}

// wake signals a job that became ready to the longest waiter among the classes that may
// have it, and to one waiter of each class over the limit, whose verdicts are not known.
func (ix *Index) wake(h uint32, r *row) {
	if ix.classes.stats.Waiters == 0 {
		return
	}
	if g := ix.groupOf(r); g != 0 && ix.keys.groups.at(g).worth == full {
		return // until it is not
	}
	about := ref{h, r.turn}
	for _, c := range ix.classes.over {
		if w := c.next(); w != nil {
			w.signal(about)
		}
	}
	if r.flags&woke != 0 {
		return
	}
	first := ix.everyone.next()
	for c := range ix.classes.of(r.verdicts.allowed) {
		if w := c.next(); w != nil && (first == nil || w.ticket < first.ticket) {
			first = w
		}
	}
	if first != nil {
		r.flags |= woke
		first.signal(about)
	}
}

// wakeOne is wake for a class that has just learned that it may have the job.
func (ix *Index) wakeOne(c *Class, h uint32, r *row) {
	if r.flags&woke != 0 {
		return
	}
	if w := c.next(); w != nil {
		r.flags |= woke
		w.signal(ref{h, r.turn})
	}
}

// Changed returns a channel that is closed at the next change of what Page
// shows, or when a delayed job becomes ready.
func (ix *Index) Changed() <-chan struct{} {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.changed == nil {
		ix.changed = make(chan struct{})
	}
	return ix.changed
}

func (ix *Index) announce() {
	if ix.changed != nil {
		close(ix.changed)
		ix.changed = nil
	}
}

// A departure is a call of Left that waits until some jobs are gone.
type departure struct {
	left int
	gone chan struct{}
}

// Left blocks until each of the jobs was seen to be off the board, or returns
// the end of ctx.
func (ix *Index) Left(ctx context.Context, ids []job.ID) error {
	d := &departure{gone: make(chan struct{})}
	var open []job.ID
	ix.mu.Lock()
	for _, id := range ids {
		if _, ok := ix.ids.get(id); ok && !slices.Contains(ix.departures[id], d) {
			ix.departures[id] = append(ix.departures[id], d)
			open = append(open, id)
		}
	}
	d.left = len(open)
	ix.mu.Unlock()
	if len(open) == 0 {
		return nil
	}
	select {
	case <-d.gone:
		return nil
	case <-ctx.Done():
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, id := range open {
		ds := slices.DeleteFunc(ix.departures[id], func(o *departure) bool { return o == d })
		if len(ds) == 0 {
			delete(ix.departures, id)
		} else {
			ix.departures[id] = ds
		}
	}
	return &job.Error{Op: "wait for jobs to end", Kind: job.Interrupted, Err: ctx.Err()}
}

func (ix *Index) depart(id job.ID) {
	if len(ix.departures) == 0 {
		return
	}
	for _, d := range ix.departures[id] {
		if d.left--; d.left == 0 {
			close(d.gone)
		}
	}
	delete(ix.departures, id)
}
