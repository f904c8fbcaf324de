package index

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// slice is how many entries a judge sees at once.
const slice = 1024

// burst is how many entries are written before the lock is released for others.
const burst = 256

// Index keeps the open jobs of one board. All its methods may be called from
// many goroutines at once. It starts none of its own: what has to be judged is
// judged by the goroutine that brought the news, off the lock.
type Index struct {
	start time.Time // of the clock that leases count on

	mu     sync.Mutex // guards what follows
	rows   slab[row]
	rares  slab[rare]
	names  *intern[string]
	labels *intern[job.Label]
	ids    directory
	turn   uint32 // the last one given out

	all   *ordered // every open job
	ready *ordered // those that are claimable now and not reserved

	reserved map[uint32]struct{}
	claimed  int64
	delays   timers // by time of day, in unix nanoseconds
	leases   timers // by nanoseconds since start
	sooner   chan struct{}

	removed removals
	sync    *Sync  // the one under way
	syncs   uint32 // number of the last one

	scoring *scoring // nil: entries come with their scores
	keys    *keys    // nil: the order does not depend on counts

	everyone *Class // of the empty key
	classes  classTable
	pending  pendingVerdicts

	changed    chan struct{} // made when somebody asks for it
	departures map[job.ID][]*departure
}

// New returns an index without jobs.
func New() *Index {
	ix := &Index{
		start: time.Now(),
		names: newIntern(strings.Clone),
		labels: newIntern(func(l job.Label) job.Label {
			return job.Label{Key: strings.Clone(l.Key), Value: strings.Clone(l.Value)}
		}),
		reserved:   make(map[uint32]struct{}),
		sooner:     make(chan struct{}, 1),
		removed:    removals{at: make(map[job.ID]driver.Position)},
		departures: make(map[job.ID][]*departure),
	}
	ix.rows.extend() // so that the pivot has its place
	ix.ids.init(&ix.rows)
	ix.delays.init(&ix.rows)
	ix.leases.init(&ix.rows)
	ix.everyone = newClass(Key{}, nil, false)
	ix.all, ix.ready = orderedBy(ix.everyone.before(ix)), orderedBy(ix.everyone.before(ix))
	ix.everyone.slot, ix.everyone.state, ix.everyone.ready = everySlot, built, ix.ready
	ix.classes.init()
	ix.pending.init()
	return ix
}

// Put inserts an entry or replaces what is known of its job, and ends a
// reservation of it. It returns false, and changes nothing, if the entry's
// position is not newer than what is known of the job, its removal included.
func (ix *Index) Put(e *Entry) bool { return ix.PutAll([]*Entry{e}) == 1 }

// PutAll is Put for many entries, in order, and much cheaper where there are
// classes. It returns how many were news.
func (ix *Index) PutAll(entries []*Entry) int {
	news := 0
	for part := range slices.Chunk(entries, slice) {
		var ticket uint64
		due := false
		for few := range slices.Chunk(part, burst) {
			s := ix.lockScored(few)
			now := time.Now()
			for _, e := range few {
				if ix.put(e, s, now) {
					news++
				}
			}
			ticket = ix.pending.ticket()
			due = ix.ranksDue()
			ix.mu.Unlock()
		}
		_ = ix.awaitVerdicts(context.Background(), ticket) // an error is the end of the context
		if due {
			ix.rankNews()
		}
	}
	return news
}

func (ix *Index) put(e *Entry, s *scoring, now time.Time) bool {
	h, known := ix.ids.get(e.ID)
	if !known {
		if e.Amends || ix.removed.knows(e.ID, e.Position) {
			return false
		}
		h = ix.rows.alloc()
		r := ix.rows.at(h)
		r.turn = ix.nextTurn()
		r.move(e.Order())
		ix.fill(r, e)
		ix.regroup(r, e.key(), s)
		ix.ids.add(e.ID, h)
		ix.all.add(h)
		ix.served(r, nil)
	} else if !ix.replace(h, e, s, now) {
		return false
	}
	r := ix.rows.at(h)
	r.seen = ix.syncs
	ix.fileRow(h, r, now)
	ix.tell(ix.groupOf(r))
	ix.announce()
	return true
}

// replace writes news about a known job and leaves it in no place.
func (ix *Index) replace(h uint32, e *Entry, s *scoring, now time.Time) bool {
	r := ix.rows.at(h)
	unseen := ix.sync != nil && r.seen != ix.syncs && (ix.sync.reset || ix.foreign(r))
	r.seen = ix.syncs
	news := e.Position > r.position || unseen || e.Position == r.position && ix.outlived(r, e)
	if !news {
		return false
	}
	before := ix.claimOf(r)
	since := ix.staysReady(r, e, now)
	ix.withdraw(h, r)
	another := !r.isOf(e)
	if o := e.Order(); o != r.Order {
		ix.all.drop(h)
		r.move(o)
		ix.all.add(h)
	}
	if e.Version != r.version || e.Attempt != r.attempt || another || unseen {
		r.verdicts, r.turn = verdictCache{}, ix.nextTurn()
	}
	ix.fill(r, e)
	if r.rare != 0 { // what is changed so has a status
		ix.rares.at(r.rare).readySince = since
	}
	ix.regroup(r, e.key(), s)
	ix.served(r, before)
	return true
}

// outlived reports whether another program's lease on a row's job is over, and e has no
// claim or another one of such a program. A lease may end without a change that has a
// position.
func (ix *Index) outlived(r *row, e *Entry) bool {
	if !ix.foreign(r) {
		return false
	}
	c := ix.rares.at(r.rare).claim
	over := !c.NoExpiry && !c.Ends.IsZero() && !time.Now().Before(c.Ends)
	return over && (e.Claim == nil || e.Claim.Foreign && e.Claim.Ends.After(c.Ends))
}

// foreign reports whether another program has claimed a row's job.
func (ix *Index) foreign(r *row) bool {
	if r.rare == 0 {
		return false
	}
	c := ix.rares.at(r.rare).claim
	return c != nil && c.Foreign
}

func (ix *Index) nextTurn() uint32 {
	ix.turn++
	return ix.turn
}

// fileRow gives a row that has no place the one that it belongs in.
func (ix *Index) fileRow(h uint32, r *row, now time.Time) {
	if r.rare != 0 {
		if c := ix.rares.at(r.rare).claim; c != nil {
			ix.become(r, claimed)
			ix.claimed++
			if !c.NoExpiry && !c.Ends.IsZero() {
				ix.armLease(h, c.Ends)
			}
			return
		}
	}
	switch ix.become(r, waiting); {
	case r.flags&heldBack != 0:
	case r.notBefore > now.UnixNano():
		ix.armDelay(h, r.notBefore)
	default:
		ix.offer(h, r)
	}
}

// withdraw takes a row out of the place where it is.
func (ix *Index) withdraw(h uint32, r *row) {
	switch r.place {
	case ready:
		ix.hide(h, r)
	case reserved:
		delete(ix.reserved, h)
	case claimed:
		ix.claimed--
		if r.timer != 0 {
			ix.leases.drop(h)
		}
	case waiting:
		if r.timer != 0 {
			ix.delays.drop(h)
		}
	case vacant:
	}
	ix.become(r, vacant)
}

// offer makes a row claimable: for those of the classes that have a verdict at
// once, for the others when they have one.
func (ix *Index) offer(h uint32, r *row) {
	ix.become(r, ready)
	r.flags &^= woke
	ix.expose(h, r)
	ix.wake(h, r)
	if r.verdicts.lacks(ix.classes.active) {
		ix.pending.queue(h, r.turn)
	}
}

// expose puts a row into every set of claimable ones that it belongs in.
func (ix *Index) expose(h uint32, r *row) {
	ix.everyone.enter(ix, h, r)
	for c := range ix.classes.of(r.verdicts.allowed) {
		c.enter(ix, h, r)
	}
}

// hide takes a row out of every set of claimable ones.
func (ix *Index) hide(h uint32, r *row) {
	ix.everyone.leave(ix, h, r)
	for c := range ix.classes.of(r.verdicts.allowed) {
		c.leave(ix, h, r)
	}
}

// Remove takes a job out. It returns false, and changes nothing, if the
// position is not newer than what is known of the job; otherwise it is
// remembered until Forget passes the position, so that late news does not
// bring the job back.
func (ix *Index) Remove(id job.ID, position driver.Position) bool {
	ix.mu.Lock()
	gone := ix.removeAt(id, position)
	due := ix.ranksDue()
	ix.mu.Unlock()
	if due {
		ix.rankNews()
	}
	return gone
}

func (ix *Index) removeAt(id job.ID, position driver.Position) bool {
	h, known := ix.ids.get(id)
	if !known {
		if ix.removed.knows(id, position) {
			return false
		}
		ix.removed.add(id, position)
		return true
	}
	r := ix.rows.at(h)
	unseen := ix.sync != nil && ix.sync.reset && r.seen != ix.syncs
	if position <= r.position && !unseen {
		return false
	}
	ix.remove(h, r)
	ix.removed.add(id, position)
	ix.announce()
	return true
}

func (ix *Index) remove(h uint32, r *row) {
	id := r.ID
	group := ix.groupOf(r)
	ix.withdraw(h, r)
	ix.tell(group)
	if group != 0 {
		ix.keys.leave(group)
	}
	ix.all.drop(h)
	ix.ids.drop(id)
	ix.empty(r)
	ix.rows.drop(h)
	ix.depart(id)
}

// Touch tells of an extension: the claim as it is now, at the version that the job had
// before it. It returns false, and changes nothing, if the position is not newer than
// what is known, or if the job is not known as claimed or not at that version: then
// news of a change before the extension are still to come, and must be news.
func (ix *Index) Touch(id job.ID, position driver.Position, version uint64, claim Claim) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	h, known := ix.ids.get(id)
	if !known {
		return false
	}
	r := ix.rows.at(h)
	if r.place != claimed || position <= r.position || version != r.version {
		return false
	}
	r.position, r.seen = position, ix.syncs
	ix.rares.at(r.rare).claim = &claim
	if r.timer != 0 {
		ix.leases.drop(h)
	}
	if !claim.NoExpiry && !claim.Ends.IsZero() {
		ix.armLease(h, claim.Ends)
	}
	ix.announce()
	return true
}

// Get returns a snapshot of what is known of a job.
func (ix *Index) Get(id job.ID) (*Entry, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	h, ok := ix.ids.get(id)
	if !ok {
		return nil, false
	}
	return ix.snapshot(ix.rows.at(h)), true
}

// Count returns the sizes. A reserved job counts as ready.
func (ix *Index) Count() Counts {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	c := Counts{Ready: int64(ix.ready.len() + len(ix.reserved)), Claimed: ix.claimed}
	c.Delayed = int64(ix.ids.len) - c.Ready - c.Claimed
	if c.Ready > 0 {
		c.OldestReadyAt = time.UnixMicro(ix.oldestReady()).UTC()
	}
	return c
}
