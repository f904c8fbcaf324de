package index

import (
	"container/list"
	"context"
	"time"
)

// MaxClasses is how many worker classes an index remembers verdicts for.
const MaxClasses = 64

// idle is for how long a class stays after its last use although another one
// wants its place. Without it, one class more than there are places would have
// all of them built again and again.
const idle = 30 * time.Second

// Slots of classes that have no bit in the rows' masks.
const (
	everySlot = -1 // of the empty key: everything that is ready
	noSlot    = -2 // over the limit, or replaced: served by a bounded scan
)

type classState uint8

const (
	clearing classState = iota // its bit is being wiped out of the rows
	building                   // what is ready is being judged, in claim order
	built
)

// A Class stands for all workers that the board's rules treat alike. It stays
// usable after its place was given to another one, at the cost of a scan for
// each Take.
type Class struct {
	key   string
	judge Judge
	slot  int
	state classState
	ready *ordered // the ready jobs that it may have

	turn     chan struct{} // held by whoever builds it
	clear    uint32        // rows before this one are clean of the slot's last owner
	clearEnd uint32
	begun    bool  // reached is set
	reached  Order // everything ready up to here was judged, or is in the docket
	retryAt  time.Time

	used    time.Time
	idlers  *list.List // of *Waiter, by ticket
	told    *list.List // waiters that were signalled
	stirred bool       // one of told may be idle again
	gone    bool       // its key may have another Class now
}

func newClass(key string, judge Judge) *Class {
	return &Class{
		key: key, judge: judge, slot: noSlot, turn: make(chan struct{}, 1),
		idlers: list.New(), told: list.New(),
	}
}

func (c *Class) awaited() bool { return c.idlers.Len()+c.told.Len() > 0 }

// Class finds the class of a key, or judges all that is ready for a new one:
// off the lock, in the goroutine of the first caller; others wait for it. The
// empty key is the class of workers whom every job suits; its judge is not
// called. A class that is known keeps its first judge, so whatever the judge
// depends on has to be part of the key. Jobs that were put before this call have a verdict when it returns.
// An error is that of the judge, or the end of ctx.
func (ix *Index) Class(ctx context.Context, key string, judge Judge) (*Class, error) {
	if key == "" {
		return ix.everyone, nil
	}
	ix.mu.Lock()
	c := ix.crowd.find(key, judge, time.Now(), ix.rows.end())
	ticket, done := ix.docket.ticket(), c.state == built
	ix.mu.Unlock()
	if done && ticket == 0 {
		return c, nil
	}
	for {
		if err := ix.build(ctx, c); err != nil {
			return nil, err
		}
		if err := ix.settle(ctx, ticket); err != nil {
			return nil, err
		}
		ix.mu.Lock()
		done := c.state == built || c.slot == noSlot
		ix.mu.Unlock()
		if done {
			return c, nil
		}
	}
}
