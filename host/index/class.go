package index

import (
	"container/list"
	"context"
	"time"
)

// MaxClasses is how many worker classes an index remembers verdicts for.
const MaxClasses = 64

// idle is how long after its last use a class keeps its slot although another class
// needs one. Without it, one class more than there are slots would have all of them
// built again and again.
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
// usable after its slot was given to another class, at the cost of a scan for
// each Take.
type Class struct {
	key       Key
	judge     Judge
	slot      int
	state     classState
	ready     *ordered   // the ready jobs that it may have
	keyQueues *keyQueues // the same jobs by key; nil while none of them has a key

	own    bool      // it has an order of its own
	scores [][]int64 // that its judge gave, by row, in parts as the slab's chunks; nil: 0 each

	turn     chan struct{} // held by whoever builds it
	clear    uint32        // rows before this one are clean of the slot's last owner
	clearEnd uint32
	begun    bool  // reached is set
	reached  Order // everything ready up to here was judged, or is among the pending verdicts
	retryAt  time.Time

	used    time.Time
	idlers  *list.List // of *Waiter, by ticket
	told    *list.List // waiters that were signalled
	stirred bool       // one of told may be idle again
	gone    bool       // its key may have another Class now
}

// A Key names a class.
type Key struct {
	Name string // of everything that its judge depends on; empty: every job suits

	// Classes of one series are one class at different times: a later one may have the
	// place of those that went before. Empty: it is in no series.
	Series string
	At     int64
}

// String returns its name.
func (k Key) String() string { return k.Name }

func newClass(key Key, judge Judge, own bool) *Class {
	return &Class{
		key: key, judge: judge, own: own, slot: noSlot, turn: make(chan struct{}, 1),
		idlers: list.New(), told: list.New(),
	}
}

func (c *Class) awaited() bool { return c.idlers.Len()+c.told.Len() > 0 }

// enter puts a row among those that the class may have.
func (c *Class) enter(ix *Index, h uint32, r *row) {
	c.ready.add(h)
	if g := ix.groupOf(r); g != 0 {
		if c.keyQueues == nil {
			c.keyQueues = newKeyQueues(ix, c.before(ix))
		}
		c.keyQueues.add(h, g)
	}
}

func (c *Class) leave(ix *Index, h uint32, r *row) {
	c.ready.drop(h)
	if g := ix.groupOf(r); g != 0 {
		c.keyQueues.drop(h, g)
	}
}

// before returns the order of jobs for the class, without regard to their keys.
func (c *Class) before(ix *Index) func(a, b uint32) bool {
	rows := &ix.rows
	if !c.own {
		return func(a, b uint32) bool { return rows.at(a).Before(&rows.at(b).Order) }
	}
	return func(a, b uint32) bool {
		if x, y := c.score(a), c.score(b); x != y {
			return x > y
		}
		return rows.at(a).Before(&rows.at(b).Order)
	}
}

// score is what a class with an order of its own gives a row.
func (c *Class) score(h uint32) int64 {
	if at := int(h >> slabBits); at < len(c.scores) && c.scores[at] != nil {
		return c.scores[at][h&(slabSize-1)]
	}
	return 0
}

// setScore is for a row that is not among those of the class.
func (c *Class) setScore(h uint32, score int64) {
	if !c.own || score == c.score(h) {
		return
	}
	at := int(h >> slabBits)
	for at >= len(c.scores) {
		c.scores = append(c.scores, nil)
	}
	if c.scores[at] == nil {
		c.scores[at] = make([]int64, slabSize)
	}
	c.scores[at][h&(slabSize-1)] = score
}

// Class finds the class of a key, or judges all that is ready for a new one:
// off the lock, in the goroutine of the first caller; others wait for it. The
// empty key is the class of workers whom every job suits; its judge is not
// called. A class that is known keeps its first judge, so whatever the judge
// depends on has to be part of the key. Jobs that were put before this call have a
// verdict when it returns. An error is that of the judge, or the end of ctx.
func (ix *Index) Class(ctx context.Context, key string, judge Judge) (*Class, error) {
	return ix.ClassOf(ctx, Key{Name: key}, judge, false)
}

// OwnClass is Class for workers who have an order of their own: the judge also
// writes the Score of each entry that it allows, which counts before the board's
// order and for this class only.
func (ix *Index) OwnClass(ctx context.Context, key string, judge Judge) (*Class, error) {
	return ix.ClassOf(ctx, Key{Name: key}, judge, true)
}

// ClassOf is Class, or OwnClass, by a Key.
func (ix *Index) ClassOf(ctx context.Context, key Key, judge Judge, own bool) (*Class, error) {
	if key.Name == "" {
		return ix.everyone, nil
	}
	ix.mu.Lock()
	c := ix.classes.find(key, judge, own, time.Now(), ix.rows.end())
	ticket, done := ix.pending.ticket(), c.state == built
	ix.mu.Unlock()
	if done && ticket == 0 {
		return c, nil
	}
	for {
		if err := ix.build(ctx, c); err != nil {
			return nil, err
		}
		if err := ix.awaitVerdicts(ctx, ticket); err != nil {
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
