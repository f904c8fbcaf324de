package client

import (
	"context"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// trips is how a worker speaks to a server that knows Work. Two calls are under way at
// most: a trip, which brings endings and extensions and comes back with claims, and a
// wait, which stands in line for claims, or for notices alone where every handler is busy.
// One goroutine decides; all fields without a lock are its own.
type trips struct {
	*run

	background context.Context //nolint:containedctx // of calls and handlers: it outlives the worker's
	wake       chan struct{}   // something is in box
	calls      sync.WaitGroup
	over       chan outcomeOf // has room for the one outcome: no handler is started after it

	mu  sync.Mutex
	box box

	free     int // handlers that may start
	reserved int // claims that calls under way ask for
	started  int
	outbox   []*delivery
	ahead    []*aheadClaim // given ahead and not begun, in claim order
	flow     flow

	trip *trip // under way
	wait *wait
	told chan *wait // that ended
	back chan *trip // that ended

	quiet   *time.Timer // when to wait for notices alone
	again   *time.Timer // when to ask again after an error
	hushed  bool        // it is time to
	failed  int         // waits in a row
	retry   time.Time   // not before
	missed  bool        // notices, perhaps
	dry     bool        // nothing to claim until a claim in hand has ended
	left    int         // claims that were ended
	closing bool        // it claims no more
	off     bool        // the server said that it may not
	ended   bool        // over was told
}

// outcomeOf is why a worker claims no more, and how many jobs it had.
type outcomeOf struct {
	err     error
	started int
}

// box is what other goroutines have for the one that decides.
type box struct {
	items []*delivery
	freed int             // handlers that returned
	took  []time.Duration // by them
	left  int             // claims that were ended
}

// delivery is something that a trip brings.
type delivery struct {
	ending *WorkEnding
	extend []*WorkExtension
	done   chan delivered // has room for the one outcome
}

type delivered struct {
	worked Worked // of an extension
	err    error
}

type trip struct {
	items  []*delivery
	asked  int
	sent   time.Time
	worked Worked
	err    error
}

type wait struct {
	cancel context.CancelFunc
	asked  int
	busy   bool // claims were in hand as it was sent
	left   int  // claims that had been ended then
	sent   time.Time
	worked Worked
	err    error
}

type aheadClaim struct {
	ctx   context.Context //nolint:containedctx // of its handler
	entry *entry
}

// hush is how long a worker with no handler to spare lets pass before it waits for notices
// alone: most jobs end sooner than a cancellation comes.
const hush = 100 * time.Millisecond

// mostItems is how many items one trip brings, and how many claims it asks for.
const mostItems = 1000

func (r *run) newTrips(background context.Context) *trips {
	return &trips{
		run: r, background: background, wake: make(chan struct{}, 1), over: make(chan outcomeOf, 1),
		free: cap(r.free), told: make(chan *wait, 1), back: make(chan *trip, 1), quiet: time.NewTimer(hush), again: time.NewTimer(0),
		flow: flow{set: r.Ahead},
	}
}

// fly works until background ends. What over is told says when it claims no more.
func (t *trips) fly(ctx context.Context) {
	defer t.calls.Wait()
	defer t.again.Stop()
	defer t.quiet.Stop()
	done := ctx.Done()
	for {
		t.decide()
		select {
		case <-t.background.Done():
			return
		case <-done:
			done = nil
			t.stop()
		case <-t.again.C:
		case <-t.wake:
			t.open()
		case <-t.quiet.C:
			t.hushed = true
		case trip := <-t.back:
			t.returned(trip)
		case wait := <-t.told:
			t.answered(wait)
		}
	}
}

// open takes what others brought.
func (t *trips) open() {
	t.mu.Lock()
	b := t.box
	t.box = box{}
	t.mu.Unlock()
	t.outbox = append(t.outbox, b.items...)
	t.free += b.freed
	for _, took := range b.took {
		t.flow.handled(took)
	}
	if b.left > 0 {
		t.left += b.left
		t.dry = false
	}
	for t.free > 0 && len(t.ahead) > 0 && !t.closing {
		next := t.ahead[0]
		t.ahead = t.ahead[1:]
		t.begin(next)
	}
}

// put hands something to the goroutine that decides.
func (t *trips) put(change func(b *box)) {
	t.mu.Lock()
	change(&t.box)
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// claimable is how many claims may be asked for now.
func (t *trips) claimable() int {
	if t.closing || len(t.ahead) > 0 || len(t.outbox) > 4*cap(t.run.free)+256 {
		return 0
	}
	n := t.free - t.reserved
	if t.MaxJobs > 0 {
		n = min(n, t.MaxJobs-t.started-t.reserved)
	}
	return max(0, min(n, mostItems))
}

// decide sends what there is to send.
func (t *trips) decide() {
	if t.trip == nil && len(t.outbox) > 0 {
		t.sendTrip()
	}
	n := t.claimable()
	switch {
	case t.off || time.Now().Before(t.retry):
	case t.wait == nil && t.trip == nil && n > 0 && !t.dry:
		t.sendWait(n)
	case t.wait == nil && t.hushed && t.holds():
		t.sendWait(0)
	case t.wait != nil && t.wait.asked == 0 && t.trip == nil && n > 0 && !t.dry:
		t.wait.cancel()
	}
	if t.MaxJobs > 0 && t.started >= t.MaxJobs {
		t.closing = true
	}
	if t.closing && !t.ended && t.trip == nil && (t.wait == nil || t.wait.asked == 0) {
		t.finish(nil)
	}
}

func (t *trips) holds() bool {
	n, _ := t.held.count()
	return n > 0
}

// finish says that no more handlers are started.
func (t *trips) finish(err error) {
	if t.ended {
		return
	}
	t.closing, t.ended = true, true
	t.over <- outcomeOf{err, t.started}
}

// stop claims no more, and gives back what has not begun.
func (t *trips) stop() {
	t.closing = true
	t.held.stopAll()
	if t.wait != nil {
		t.wait.cancel()
	}
	t.giveBackAhead(ErrStopping.Error())
}

// request is a call's common part.
func (t *trips) request(n int) *WorkRequest {
	o := t.options(n)
	return &WorkRequest{
		Owner: o.Owner, Max: int32(n), Names: o.Names, Filter: o.Filter, Lease: duration(o.Lease), WorkerLabels: o.Labels,
	}
}

func (t *trips) sendTrip() {
	n := 0
	trip := &trip{asked: t.claimable(), sent: time.Now()}
	request := t.request(trip.asked)
	for n < len(t.outbox) && len(request.Endings) < mostItems && len(request.Extend) == 0 {
		d := t.outbox[n]
		if d.ending != nil {
			request.Endings = append(request.Endings, d.ending)
		}
		request.Extend = append(request.Extend, d.extend...)
		n++
	}
	trip.items, t.outbox = t.outbox[:n:n], t.outbox[n:]
	if !t.closing && t.MaxJobs == 0 && (trip.asked > 0 || len(t.ahead) > 0) {
		request.Ahead = int32(max(0, t.flow.ahead(cap(t.run.free), t.lease)-len(t.ahead)))
	}
	t.trip, t.reserved = trip, t.reserved+trip.asked
	t.calls.Go(func() {
		trip.worked, trip.err = t.Board.Work(t.background, request)
		t.back <- trip
	})
}

func (t *trips) sendWait(n int) {
	ctx, cancel := context.WithCancel(t.background)
	w := &wait{cancel: cancel, asked: n, left: t.left, busy: t.holds() || t.trip != nil || len(t.outbox) > 0, sent: time.Now()}
	request := t.request(n)
	if n == 0 || !t.UntilEmpty {
		request.Wait = durationpb.New(t.run.wait())
	}
	t.wait, t.reserved = w, t.reserved+n
	t.calls.Go(func() {
		w.worked, w.err = t.Board.Work(ctx, request)
		if n > 0 && w.err != nil && ctx.Err() != nil {
			// It was called off, and may have been given claims: nobody else would have these
			// until their leases ran out.
			again, done := context.WithTimeout(t.background, 5*time.Second)
			defer done()
			request.Wait = nil
			w.worked, w.err = t.Board.Work(again, request)
		}
		t.told <- w
	})
}
