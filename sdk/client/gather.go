package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// A Client joins calls on one job each that many goroutines make at once. Calls of one
// kind on one board are sent at once while fewer than maxUnderway are under way, and
// those that come meanwhile share the next one. No timer gathers callers, so a lone call
// is never delayed. If the calls under way hang for maxQueued, those that wait are sent
// by themselves.
const (
	maxUnderway  = 2           // calls of one kind on one board
	maxItemBytes = 16 << 10    // of a posting that shares a call; larger ones go by themselves
	maxQueued    = time.Second // for which a call waits for others before it goes
)

// batchSize is how many jobs share one call at most.
const batchSize = 256

// gathered has a gatherer for each kind of call that is shared.
type gathered struct {
	posts  gatherer[*NewJob, *Job]
	claims gatherer[*boarddv1.ClaimJobsRequest, *Claim]
	ends   gatherer[*Claim, struct{}]
}

func newGathered() *gathered {
	return &gathered{
		posts: gatherer[*NewJob, *Job]{op: "post", copied: proto.CloneOf[*NewJob], send: (*Board).post},
		claims: gatherer[*boarddv1.ClaimJobsRequest, *Claim]{
			op: "claim", copied: proto.CloneOf[*boarddv1.ClaimJobsRequest], send: (*Board).claimAlike, spare: (*Board).returned,
		},
		ends: gatherer[*Claim, struct{}]{op: "consume", send: (*Board).consume},
	}
}

// A gatherer makes few calls of one kind out of many. Callers share one if their keys
// are equal.
type gatherer[In, Out any] struct {
	op string // as errors name it

	// send makes a call. Its error is a Failures where only some items failed.
	send func(b *Board, ctx context.Context, items []In) ([]Out, error)

	// copied returns an item that stays as it is when its caller has left; nil: each
	// one does.
	copied func(In) In

	// spare takes results that were not for a certain item and that nobody waits for
	// any more. It is nil where each result is for the item in its place.
	spare func(b *Board, results []Out)

	mu    sync.Mutex
	lines map[string]*line[In, Out] // those with a call under way
}

// line is the callers of one key. The gatherer's mu guards it.
type line[In, Out any] struct {
	key      string
	board    *Board
	underway int
	waiting  []*asker[In, Out]
}

// asker is one caller who waits. The gatherer's mu guards it.
type asker[In, Out any] struct {
	item   In
	flight *flight           // the call that it shares; nil before
	gone   bool              // nobody waits any more
	done   chan outcome[Out] // has room for the one outcome
}

type outcome[Out any] struct {
	result Out
	err    error
}

// flight is a shared call. It ends early when nobody waits for it any more. The
// gatherer's mu guards it.
type flight struct {
	left   int
	cancel context.CancelFunc
}

// do makes a call for one item, or shares one. The error of the item alone is a
// Failures of one.
func (g *gatherer[In, Out]) do(ctx context.Context, b *Board, key string, item In) (result Out, err error) {
	l, mine := g.join(b, key, item)
	if mine == nil {
		defer g.next(l)
		return g.alone(ctx, b, item)
	}
	overdue := time.NewTimer(maxQueued)
	defer overdue.Stop()
	select {
	case o := <-mine.done:
		return o.result, o.err
	case <-overdue.C:
		if g.withdraw(l, mine) {
			return g.alone(ctx, b, item)
		}
	case <-ctx.Done():
	}
	select {
	case o := <-mine.done:
		return o.result, o.err
	case <-ctx.Done():
	}
	g.leave(l, mine)
	select {
	case o := <-mine.done: // it came at the last moment
		return o.result, o.err
	default:
		return result, gaveUp(g.op, ctx.Err())
	}
}

// alone makes a call for one item.
func (g *gatherer[In, Out]) alone(ctx context.Context, b *Board, item In) (result Out, err error) {
	results, err := g.send(b, ctx, []In{item})
	if len(results) > 0 {
		result = results[0]
	}
	return result, err
}

// join adds a call to its line. The asker is nil if it goes at once; next is to be
// called then when it has ended.
func (g *gatherer[In, Out]) join(b *Board, key string, item In) (*line[In, Out], *asker[In, Out]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.lines[key]
	if l == nil {
		if g.lines == nil {
			g.lines = make(map[string]*line[In, Out])
		}
		l = &line[In, Out]{key: key, board: b}
		g.lines[key] = l
	}
	if l.underway < maxUnderway {
		l.underway++
		return l, nil
	}
	if g.copied != nil {
		item = g.copied(item)
	}
	mine := &asker[In, Out]{item: item, done: make(chan outcome[Out], 1)}
	l.waiting = append(l.waiting, mine)
	return l, mine
}

// withdraw takes a caller out of its line, unless its call has gone.
func (g *gatherer[In, Out]) withdraw(l *line[In, Out], a *asker[In, Out]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a.flight != nil {
		return false
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(x *asker[In, Out]) bool { return x == a })
	return true
}

// leave takes a caller away who does not wait any more.
func (g *gatherer[In, Out]) leave(l *line[In, Out], a *asker[In, Out]) {
	if g.withdraw(l, a) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	a.gone = true
	if a.flight.left--; a.flight.left == 0 {
		a.flight.cancel()
	}
}

// next makes calls, in place of one that ended, as long as anybody waits.
func (g *gatherer[In, Out]) next(l *line[In, Out]) {
	if g.rest(l) {
		return
	}
	go func() {
		for !g.rest(l) {
			g.fly(l)
		}
	}()
}

// rest reports whether nobody waits. If so, it counts one call less under way.
func (g *gatherer[In, Out]) rest(l *line[In, Out]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(l.waiting) > 0 {
		return false
	}
	if l.underway--; l.underway == 0 {
		delete(g.lines, l.key)
	}
	return true
}

// fly makes one call for those who wait.
func (g *gatherer[In, Out]) fly(l *line[In, Out]) {
	ctx, cancel := context.WithCancel(context.Background()) // no single caller's
	defer cancel()
	f := &flight{cancel: cancel}
	g.mu.Lock()
	f.left = min(len(l.waiting), batchSize)
	batch := slices.Clone(l.waiting[:f.left])
	l.waiting = slices.Delete(l.waiting, 0, f.left)
	for _, a := range batch {
		a.flight = f
	}
	g.mu.Unlock()
	if len(batch) > 0 {
		g.share(ctx, l.board, batch)
	}
}

// share makes one call for several callers. One that fails as a whole, for a reason
// that may be one item's, is made again for each of them.
func (g *gatherer[In, Out]) share(ctx context.Context, b *Board, batch []*asker[In, Out]) {
	items := make([]In, len(batch))
	for i, a := range batch {
		items[i] = a.item
	}
	results, err := g.send(b, ctx, items)
	if len(batch) == 1 || g.spare != nil || !suspect(err) {
		g.deliver(b, batch, results, err)
		return
	}
	for i := range batch {
		results, err := g.send(b, ctx, items[i:i+1])
		g.deliver(b, batch[i:i+1], results, err)
	}
}

// suspect reports whether a call failed as a whole for a reason that may be one of
// its items'.
func suspect(err error) bool {
	var items Failures
	if err == nil || errors.As(err, &items) {
		return false
	}
	switch job.KindOf(err) {
	case job.Unavailable, job.OutcomeUnknown, job.Interrupted, job.QuotaExceeded, job.Unauthenticated, job.PermissionDenied, job.NotFound:
		return false
	default:
		return true
	}
}

// deliver hands out what a call gave.
func (g *gatherer[In, Out]) deliver(b *Board, batch []*asker[In, Out], results []Out, err error) {
	var items Failures
	each, some := Each(err, len(batch)), errors.As(err, &items)
	g.mu.Lock()
	for i, a := range batch {
		if a.gone {
			continue
		}
		o := outcome[Out]{err: each[i]}
		if some && o.err != nil {
			o.err = Failures{o.err}
		}
		switch {
		case g.spare == nil && i < len(results):
			o.result = results[i]
		case g.spare != nil && len(results) > 0:
			o.result, o.err, results = results[0], nil, results[1:]
		}
		a.done <- o
	}
	g.mu.Unlock()
	if g.spare != nil && len(results) > 0 {
		go g.spare(b, results)
	}
}
