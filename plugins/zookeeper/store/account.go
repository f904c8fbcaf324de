package store

import (
	"context"
	"math"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/job"
)

// An account says whether all that changed in a folder is known, without a list of
// its names. ZooKeeper counts the nodes that came and went, and each of boardd's
// changes says how many that were with it. Where the sums are equal nobody else has
// changed the folder.
type account struct {
	cversion int32            // of the folder, at a time up to which everything is known
	pzxid    uint64           // its last change then
	moves    map[uint64]int32 // boardd's changes since, by transaction, and how many nodes came and went with each

	explained time.Time // when the sums may be compared again
}

// explainPause is between two comparisons. A change of boardd's own is told so much
// later at most, as long as no other program changes the folder.
const explainPause = 2 * time.Millisecond

// maxMoves is how many changes are summed up at most; then a list has to come.
const maxMoves = 1 << 16

// moved notes one of boardd's changes. b.mu is held.
func (a *account) moved(zxid uint64, children int32) {
	if zxid <= a.pzxid || children == 0 || len(a.moves) >= maxMoves {
		return
	}
	if a.moves == nil {
		a.moves = map[uint64]int32{}
	}
	a.moves[zxid] = children
}

// movedOne notes a change of this host that the log does not tell of, and with which
// one node came to TaskFlow's folder, or went.
func (b *board) movedOne(stat *session.Stat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached(uint64(stat.Mzxid))
	b.folder.moved(uint64(stat.Mzxid), 1)
	b.advance()
}

// rebase begins a new sum where everything is known. b.mu is held.
func (a *account) rebase(stat *session.Stat) {
	if a.pzxid > uint64(stat.Pzxid) {
		return
	}
	a.cversion, a.pzxid = stat.Cversion, uint64(stat.Pzxid)
	for zxid := range a.moves {
		if zxid <= a.pzxid {
			delete(a.moves, zxid)
		}
	}
}

// balanced reports whether boardd's changes are all that there were. What ZooKeeper
// counts wraps. b.mu is held.
func (a *account) balanced(stat *session.Stat) bool {
	sum := a.cversion
	for zxid, children := range a.moves {
		switch {
		case zxid > uint64(stat.Pzxid):
		case children == unknownChildren:
			return false
		default:
			sum += children
		}
	}
	return a.pzxid != 0 && sum == stat.Cversion
}

// explainable reports whether somebody waits to be told of a change, and what keeps
// it back is that TaskFlow's folder was not listed since. b.mu is held.
func (b *board) explainable() bool {
	waits := len(b.events.waiting) > 0 || b.events.wanted > b.events.told
	return b.folder.dirty && b.loadedOnce && waits && b.folder.upTo < b.log.upTo
}

// explain moves on the position up to which TaskFlow's folder is known, if nobody but
// boardd has changed it: a list of it may take long, and has its pace.
func (b *board) explain(ctx context.Context) error {
	b.mu.Lock()
	horizon := b.horizon
	b.folder.explained = time.Now().Add(explainPause)
	b.mu.Unlock()
	stat, err := b.client().Exists(ctx, b.at.Board)
	if err != nil || stat == nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached(uint64(stat.Pzxid))
	if b.folder.balanced(stat) {
		b.folder.upTo = max(b.folder.upTo, horizon, uint64(stat.Pzxid))
		b.folder.rebase(stat)
		b.advance()
	}
	return nil
}

// advance moves on the positions up to which everything is known, and tells watchers.
// A watch that has not fired says that its folder is as it was up to the last change
// that this session has seen: ZooKeeper tells of it first. Another session has seen
// more, and the watches tell nothing of it. b.mu is held.
func (b *board) advance() {
	select {
	case <-b.lost:
		return // the board is read anew
	default:
	}
	b.poll(&b.folder)
	b.poll(&b.log.follower)
	if !b.folder.dirty && !b.folder.busy {
		b.folder.upTo = max(b.folder.upTo, b.horizon)
	}
	if !b.log.dirty && !b.log.busy && len(b.log.ahead) == 0 {
		b.log.upTo = max(b.log.upTo, b.horizon)
	}
	b.events.tell(b.upTo())
}

// A silence is what of boardd's own changes no other host is told of, and the log
// does not show, while it is on its way. Nothing after its beginning is told before
// it is known.
type silence struct {
	first uint64   // the number of list[0]
	list  []uint64 // what was known when each began, in that order; over: it has ended
}

const over = math.MaxUint64

// begin notes that such a change begins, and returns what notes that it has ended.
func (s *silence) begin(b *board) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	number := s.first + uint64(len(s.list))
	s.list = append(s.list, b.horizon)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		s.list[number-s.first] = over
		for len(s.list) > 0 && s.list[0] == over {
			s.list = s.list[1:]
			s.first++
		}
		b.advance()
	}
}

// upTo returns the position before which none is on its way. b.mu is held.
func (s *silence) upTo() uint64 {
	if len(s.list) == 0 {
		return math.MaxUint64
	}
	return s.list[0]
}

// catchUp waits until everything is told that was known when it was called, for a
// while.
func (b *board) catchUp(ctx context.Context) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	goal := b.horizon
	b.events.wanted = max(b.events.wanted, goal)
	for b.events.told < goal && b.events.broken == nil {
		b.wake()
		changed := b.events.changed
		b.mu.Unlock()
		var err error
		done := false
		select {
		case <-changed:
		case <-timeout.C:
			done = true
		case <-ctx.Done():
			err = alive(ctx)
		case <-b.life.Done():
			err = notOpen(b.name)
		}
		b.mu.Lock()
		if done || err != nil {
			return err
		}
	}
	return nil
}

// overtake brings what is known here as far as a position that another host has told.
func (b *board) overtake(ctx context.Context, position uint64) error {
	b.mu.Lock()
	ahead, observe := position > b.horizon, b.spec.Observe
	b.mu.Unlock()
	if !ahead {
		return nil
	}
	if observe {
		return b.client().Sync(ctx, b.at.Board)
	}
	return b.touch(ctx)
}

// touch makes a change that nobody looks at, to learn how far the store is.
func (b *board) touch(ctx context.Context) error {
	self := b.hosts.self.Load()
	if self == nil {
		return nil
	}
	m := b.client().Multi(nil)
	at := m.Set(b.at.hosts()+"/"+*self, nil, -1)
	before := time.Now()
	done, err := m.Do(ctx)
	after := time.Now()
	if session.Conflict(err) || job.KindOf(err) == job.OutcomeUnknown {
		return nil // another session has begun, and the board is read anew
	}
	if err != nil {
		return err
	}
	stat := done[at].Stat
	b.store.clock.heard(uint64(stat.Mzxid), stat.Mtime, before, after)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reached(uint64(stat.Mzxid))
	b.wake()
	return nil
}

// nudge does so for what was found out late, and waits for a position that a still
// store has not reached.
func (b *board) nudge(ctx context.Context) error {
	b.mu.Lock()
	late := uint64(0)
	for _, c := range b.events.waiting {
		late = max(late, uint64(c.Position))
	}
	observe := b.spec.Observe
	still := late > b.horizon
	if still && observe {
		b.reached(late)
		b.wake()
	}
	b.mu.Unlock()
	if !still || observe {
		return nil
	}
	return b.touch(ctx)
}
