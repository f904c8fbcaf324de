package store

import (
	"context"
	"math"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// What a board says that does not move.
const (
	sharedBoard  = "other programs may write to the board, such as TaskFlow, and nothing would keep them from it while it moves: want them stopped, or foreign = false in the board's config"
	sessionBoard = "the board's claims end with a session with ZooKeeper, also while it moves: want claims = \"lease\" in the board's config"
	metOthers    = "another program changed job %v, though boardd alone is said to write to the board: nothing would keep it from that while the board moves"
	heldByOthers = "another program holds job %v: its claim cannot come along"
)

// moveTries is how often a step is tried that another one comes before.
const moveTries = 10

// unmovable says why a board with these settings does not move; nil: it does. A board to which
// others write can leave if they were stopped.
func (s *boardSettings) unmovable(stopped bool) error {
	switch {
	case *s.Foreign && !stopped:
		return job.Errorf(job.Precondition, sharedBoard)
	case s.Claims == claimsSession:
		return job.Errorf(job.Precondition, sessionBoard)
	}
	return nil
}

// rests reports whether the board refuses what others ask for, so that boardd does not do
// anything with it by itself either.
func (r *root) rests() bool { return r.passage != transition.Passage{} }

// refuses returns the answer to an op that the board does not take as it stands.
func (r *root) refuses(op *driver.Op) (driver.Result, bool) {
	answer, refused := r.passage.Refuses(op, r.generation)
	if !refused && r.entering {
		return driver.Result{Kind: job.Unavailable, Message: transition.Receiving}, true
	}
	return answer, refused
}

// ownChange stands for a change that boardd makes by itself.
var ownChange = driver.Op{Kind: driver.Update}

// fits refuses a change that the board does not take as the root has it which the change's
// transaction checks, and has the claim that it makes go by that.
func (ch *change) fits(r *root) error {
	op := ch.op
	if op == nil {
		op = &ownChange
	}
	if answer, refused := r.refuses(op); refused {
		return &job.Error{Kind: answer.Kind, Message: answer.Message}
	}
	if c := ch.rec.claim; c != nil && c.token.Epoch == 0 {
		c.base = r.offset
	}
	return nil
}

// MoveBoard takes a step of a move. Each change checks the root, and each of a document its
// board's folder, so that the one transaction which writes both stops everything that is under
// way.
func (s *Store) MoveBoard(ctx context.Context, name string, m driver.Move) error {
	b, err := s.ready(ctx, name)
	if err != nil {
		return err
	}
	b.mu.Lock()
	observe := b.spec.Observe
	b.mu.Unlock()
	if observe {
		return job.Errorf(job.Precondition, transition.Observed)
	}
	for range moveTries {
		if err := b.ready(ctx); err != nil {
			return err
		}
		if same, err := b.latestRoot(ctx); err != nil || !same {
			if err != nil {
				return err
			}
			continue
		}
		if done, err := b.step(ctx, &m); done || err != nil {
			return err
		}
	}
	return job.Errorf(job.Unavailable, "others move the board at the same time")
}

// step is one try of a step; done is false if another one came before it.
func (b *board) step(ctx context.Context, m *driver.Move) (done bool, err error) {
	b.mu.Lock()
	r, settings := b.root, b.settings
	b.mu.Unlock()
	after, err := r.passage.After(m, 0)
	if err == nil && !r.rests() { // one that a move has taken comes to its end
		err = settings.unmovable(m.Shared && m.Step != driver.Receive)
	}
	if err != nil {
		return false, err
	}
	switch m.Step {
	case driver.Receive:
		return b.receive(ctx, r, m)
	case driver.Freeze:
		if err := b.freezable(ctx, &r, m.Shared); err != nil {
			return false, err
		}
	case driver.Leave:
		if m.Shared && !r.passage.Gone {
			if err := b.untouched(ctx); err != nil {
				return false, err
			}
		}
	default:
	}
	next := r
	next.passage, next.entering = after, false
	if done, err := b.pass(ctx, r, next, m.Shared); !done {
		return false, err
	}
	switch {
	case m.Step == driver.Empty && m.Shared:
		return true, b.empty(ctx, !r.passage.Emptied)
	case m.Step != driver.Freeze:
		return true, nil
	}
	err = b.arrive(ctx)
	if err == nil && m.Shared && !after.Gone {
		err = b.unheld()
	}
	return true, err
}

// freezable refuses to freeze a board, which other programs may have written to or not.
func (b *board) freezable(ctx context.Context, r *root, shared bool) error {
	switch {
	case r.rests():
		return nil
	case !shared:
		return b.ours()
	}
	if err := b.settleOthers(ctx); err != nil {
		return err
	}
	return b.unheld()
}

// ours refuses to freeze a board on which another program was seen.
func (b *board) ours() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.other != (job.ID{}) {
		return job.Errorf(job.Precondition, metOthers, b.other)
	}
	for id, v := range b.jobs {
		if v.stranger() != nil {
			return job.Errorf(job.Precondition, heldByOthers, id)
		}
	}
	return nil
}

// pass makes the root another one, and lets the documents be changed or not as that says; false:
// it was changed meanwhile, or nobody knows whether it is done. Of a shared board that is frozen it
// is kept when that was.
func (b *board) pass(ctx context.Context, r, next root, shared bool) (done bool, err error) {
	d := b.store.documents
	shelf, err := d.readShelf(ctx, b.name)
	if err != nil {
		return false, err
	}
	closed := next.passage.Closed() != nil
	m := b.client().Multi(d.acl())
	if next != r {
		m.Set(b.at.own, next.encode(), r.version)
	}
	switch path := boardDocuments(b.store.settings.root, b.name); {
	case closed == shelf.closed:
	case !shelf.there: // it is made open, and closed by the next try
		if err := b.client().EnsurePath(ctx, path, d.acl()); err != nil {
			return false, err
		}
		return false, nil
	default:
		m.Set(path, markOf(closed), shelf.version)
	}
	if frozen := next.passage != (transition.Passage{}) && !next.passage.Receiving; shared && (!frozen || !next.passage.Gone) {
		if err := b.addFroze(ctx, m, frozen); err != nil {
			return false, err
		}
	}
	if m.Len() == 0 {
		return true, nil
	}
	_, err = m.Do(ctx)
	switch {
	case err == nil:
		_, err = b.latestRoot(ctx)
		return err == nil, err
	case session.Conflict(err):
		return false, nil
	case session.Lost(err) && ctx.Err() == nil:
		return false, b.client().Ready(ctx)
	}
	return false, err
}

// arrive waits until all is known here that was done before the root was written as it is
// known: nothing of it comes later.
func (b *board) arrive(ctx context.Context) error {
	if err := b.catchUp(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.events.broken != nil || b.events.told < b.root.zxid {
		return job.Errorf(job.Unavailable, "what was done last on the board is not known yet")
	}
	return nil
}

// receive has the board receive: first it refuses everything else, so that nobody claims a job
// any more, and where nobody holds one it goes on as the move says.
func (b *board) receive(ctx context.Context, r root, m *driver.Move) (done bool, err error) {
	if most := uint64(math.MaxInt64) - r.zxid; uint64(m.Position) >= most { // some stores keep positions as signed numbers
		return false, job.Errorf(job.Invalid, "the old board is at position %d: want less than %d", m.Position, most)
	}
	if !r.rests() {
		next := r
		next.passage, next.entering = transition.Passage{Move: m.ID, Receiving: true}, true
		_, err := b.pass(ctx, r, next, false)
		return false, err
	}
	if r.entering {
		if err := b.arrive(ctx); err != nil {
			return false, err
		}
		b.mu.Lock()
		claimed := b.tally.claimed
		b.mu.Unlock()
		if _, err := (transition.Passage{}).After(m, claimed); err != nil {
			next := r
			next.passage, next.entering = transition.Passage{}, false
			if done, again := b.pass(ctx, r, next, false); !done {
				return false, again
			}
			return false, err
		}
	}
	next := r
	next.entering, next.generation = false, max(r.generation, m.Generation)
	next.offset = max(r.offset, 1) // a program of before does not read what comes now
	if beyond := uint64(m.Position) + 1; beyond > r.zxid+next.offset {
		next.offset = beyond - r.zxid // every later change is further than the root's own
	}
	if next == r {
		return true, nil
	}
	if done, err := b.pass(ctx, r, next, false); !done {
		return false, err
	}
	return true, b.ready(ctx)
}

// left refuses to tell how jobs of a board stand that has gone to another store, as it is
// known after a Sync.
func (b *board) left(ctx context.Context) error {
	if err := b.heedRoot(ctx); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.root.passage.Left()
}

var _ driver.Mover = (*Store)(nil)
