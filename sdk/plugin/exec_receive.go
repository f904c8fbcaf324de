package plugin

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// deliver takes what a driver answered. An error says what is wrong with it. It is
// called by one goroutine at a time for one flight.
func (e *executor) deliver(m *wire.Answer) error {
	f, items, err := e.find(m)
	if f == nil || err != nil {
		return err
	}
	slab := resultPool.Get().(*[]driver.Result)
	results := slices.Grow((*slab)[:0], len(items))[:len(items)]
	defer func() {
		clear(results)
		*slab = results
		resultPool.Put(slab)
	}()
	for i, it := range items {
		if it.parts.Done {
			return fmt.Errorf("it answers op %d twice", m.Pieces[i].Tag)
		}
		if results[i], err = it.parts.Add(m.Pieces[i]); err != nil {
			return fmt.Errorf("result %d: %w", m.Pieces[i].Tag, err)
		}
	}
	failpoint.Hit("plugin/host/before-deliver")
	e.settle(m.Seq, f, items, results)
	return nil
}

// resultPool has room for the results of one message.
var resultPool = sync.Pool{New: func() any { return new([]driver.Result) }}

// find names the items that a message answers, in its order. The flight is nil if
// the executor ended meanwhile.
func (e *executor) find(m *wire.Answer) (*flight, []*item, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		return nil, nil, nil
	}
	f := e.flights[m.Seq]
	if f == nil {
		return nil, nil, fmt.Errorf("it answers batch %d, which is not under way", m.Seq)
	}
	items := make([]*item, len(m.Pieces))
	for i, r := range m.Pieces {
		if r.Tag == 0 || int(r.Tag) > len(f.items) {
			return nil, nil, fmt.Errorf("it answers op %d of a batch of %d", r.Tag, len(f.items))
		}
		items[i] = f.items[r.Tag-1]
		if items[i].parts.Done {
			return nil, nil, fmt.Errorf("it answers op %d twice", r.Tag)
		}
	}
	return f, items, nil
}

// settle hands results to their callers and makes lanes with room ready to send.
func (e *executor) settle(seq uint64, f *flight, items []*item, results []driver.Result) {
	e.mu.Lock()
	sends := false
	for i, it := range items {
		if it.group == nil || !it.parts.Done {
			continue
		}
		g := it.group
		it.group = nil
		it.unmark(g.lane.busy)
		it.finish(results[i])
		f.left--
		if g.left--; g.left == 0 {
			g.lane.inFlight--
		}
		sends = e.offer(g.lane) || sends
	}
	if f.left == 0 {
		delete(e.flights, seq)
	}
	e.mu.Unlock()
	if sends {
		e.wakeSender()
	}
}

// lost gives every op of a batch that was not answered the same error.
func (e *executor) lost(seq uint64, err error) {
	e.mu.Lock()
	if f := e.flights[seq]; f != nil {
		e.lose(seq, f, err)
	}
	e.mu.Unlock()
	e.wakeSender()
}

// lose is lost for a caller that has e.mu.
func (e *executor) lose(seq uint64, f *flight, err error) {
	delete(e.flights, seq)
	result := driver.Failed(err)
	for _, it := range f.items {
		g := it.group
		if g == nil {
			continue
		}
		it.group = nil
		it.unmark(g.lane.busy)
		it.finish(result)
		if g.left--; g.left == 0 {
			g.lane.inFlight--
			e.offer(g.lane)
		}
	}
}

// complete says what is missing of a batch that was answered whole.
func (e *executor) complete(seq uint64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.flights[seq]; f != nil {
		return fmt.Errorf("it answers only %d ops of a batch of %d", len(f.items)-f.left, len(f.items))
	}
	return nil
}

// fail ends the executor: ops that were sent are OutcomeUnknown, the others were not
// applied.
func (e *executor) fail(message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.broken != nil {
		return
	}
	e.broken = &job.Error{Kind: job.Unavailable, Message: message}
	close(e.done)
	for seq, f := range e.flights {
		e.lose(seq, f, &job.Error{Kind: job.OutcomeUnknown, Message: message})
	}
	for _, l := range e.lanes {
		for _, it := range l.pending {
			it.finish(driver.Failed(e.broken))
		}
		l.pending = nil
	}
}

// finish hands a result to the caller, unless it has one. The caller has the
// executor's mu.
func (it *item) finish(result driver.Result) {
	if it.done {
		return
	}
	it.done = true
	c := it.call
	if c.gone {
		return
	}
	c.results[it.index] = result
	if c.left--; c.left == 0 {
		c.completed <- struct{}{}
	}
}

// watch sets a timer for the oldest flight, if none is set. The caller has e.mu.
func (e *executor) watch() {
	if e.watched {
		return
	}
	e.watched = true
	time.AfterFunc(time.Second, e.overdue)
}

// overdue looks for a batch that the driver should have answered long ago.
func (e *executor) overdue() {
	e.mu.Lock()
	e.watched = false
	now := time.Now()
	late := false
	for _, f := range e.flights {
		late = late || now.After(f.deadline)
	}
	if len(e.flights) > 0 && !late {
		e.watch()
	}
	e.mu.Unlock()
	if late {
		e.fault(fmt.Errorf("it did not answer a batch within its timeout and %v", execGrace))
	}
}
