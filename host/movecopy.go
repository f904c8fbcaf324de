package host

import (
	"context"
	"errors"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Rounds of what changed while the board was brought to its new store end when so few jobs are
// left, when a round leaves more than three quarters of what the last one did, or after so
// many: then the board is frozen for the rest.
const (
	smallRound = 256
	maxRounds  = 20
)

// copy brings the board to its new store while it is at work, then in rounds what changed
// meanwhile, and then goes on with a frozen one.
func (r *moveRun) copy(ctx context.Context) error {
	e, err := r.ends(ctx)
	if err != nil {
		return err
	}
	standing, err := r.source(ctx)
	if err != nil {
		return err
	}
	position, err := e.from.position(ctx)
	if err != nil {
		return err
	}
	c, err := r.receive(ctx, &e, standing.Generation, position)
	if err != nil {
		return err
	}
	defer c.Follow(ctx, position)()
	err = r.rounds(ctx, c)
	if err != nil && !errors.Is(err, board.ErrForgotten) {
		return err
	}
	if err := r.reached("freeze"); err != nil {
		return err
	}
	brought, generation := c.Brought(), standing.Generation
	if err != nil { // its store forgets faster than it can be brought: all of it comes when it is frozen
		brought = 0
	}
	if err := r.update(ctx, func(m *catalog.Move) {
		m.State, m.Frozen, m.Brought, m.Generation, m.Problem = catalog.Freezing, time.Now().UTC(), brought, generation, ""
		m.Rounds = r.round.Load()
	}); err != nil {
		return err
	}
	e.move = r.present()
	if brought == 0 {
		return r.whole(ctx, &e)
	}
	return r.finish(ctx, &e, c)
}

// receive has the new board, empty, take in jobs from behind a position of the old one.
func (r *moveRun) receive(ctx context.Context, e *ends, generation uint64, position driver.Position) (*board.Copy, error) {
	if err := r.reached("receive"); err != nil {
		return nil, err
	}
	if err := e.to.empty(ctx); err != nil {
		return nil, err
	}
	if _, err := e.to.open(ctx); err != nil {
		return nil, err
	}
	if err := e.to.step(ctx, driver.Move{Step: driver.Receive, ID: e.id, Generation: generation, Position: position}); err != nil {
		return nil, err
	}
	return r.newCopy(ctx, e)
}

// newCopy makes a Copy to a board that receives.
func (r *moveRun) newCopy(ctx context.Context, e *ends) (*board.Copy, error) {
	there, err := e.to.open(ctx)
	if err != nil {
		return nil, err
	}
	c := &board.Copy{
		From: e.from.running.raw, To: e.to.running.raw, Key: e.from.key(), Move: e.id, Target: there,
		History: e.to.History, Progress: func(jobs int64) { r.jobs.Store(jobs) },
	}
	if on := r.host.registry.board(r.at.Tenant, r.at.Name); on != nil && there.Capabilities.Limits {
		c.Counted = on.quota.Counted
	}
	return c, nil
}

// rounds brings everything, and what changes, until little is left.
func (r *moveRun) rounds(ctx context.Context, c *board.Copy) error {
	if err := r.reached("documents"); err != nil {
		return err
	}
	if err := c.Documents(ctx); err != nil {
		return err
	}
	if err := r.reached("jobs"); err != nil {
		return err
	}
	if err := c.Everything(ctx); err != nil {
		return err
	}
	r.round.Store(0)
	for last := 0; ; {
		if err := r.reached("round"); err != nil {
			return err
		}
		left := c.Changed()
		n := r.round.Add(1)
		if err := c.Round(ctx); err != nil {
			return err
		}
		r.logger.Debug("a round of the board's move was made", "round", n, "jobs", left, "left", c.Changed())
		if left <= smallRound || last > 0 && left > last-last/4 || n >= maxRounds {
			return nil
		}
		last = left
	}
}

// goOn goes on with a board that another host, or an earlier try, froze or was about to.
func (r *moveRun) goOn(ctx context.Context) error {
	e, err := r.ends(ctx)
	if err != nil {
		return err
	}
	switch {
	case e.move.Compared:
		return r.switchOver(ctx, &e)
	case e.move.Brought == 0:
		return r.whole(ctx, &e)
	}
	if _, err := e.to.open(ctx); err != nil {
		return err
	}
	c, err := r.newCopy(ctx, &e)
	if err != nil {
		return err
	}
	defer c.Follow(ctx, e.move.Brought)()
	return r.finish(ctx, &e, c)
}

// freezeWithin bounds how long a store may take to freeze a board.
const freezeWithin = 30 * time.Second

// notedWithin is how long ticks under way are waited for before a board is frozen.
const notedWithin = 2 * time.Second

// freeze freezes the board in its old store, and returns its generation there and the position
// that it has come to.
func (r *moveRun) freeze(ctx context.Context, e *ends) (generation uint64, position driver.Position, err error) {
	from, err := r.opened(ctx)
	if err != nil {
		return 0, 0, err
	}
	noting, noted := context.WithTimeout(ctx, notedWithin)
	defer from.HoldTicks(noting)()
	noted()
	generation = from.Status().Generation
	freezing, cancel := context.WithTimeout(context.WithoutCancel(ctx), freezeWithin) // or it might be done after a thaw, when somebody gives the move up now
	defer cancel()
	if err := e.from.step(freezing, e.old(driver.Freeze)); err != nil {
		return 0, 0, err
	}
	position, err = e.from.position(ctx)
	return generation, position, err
}

// finish freezes the board, brings the rest, compares, and switches.
func (r *moveRun) finish(ctx context.Context, e *ends, c *board.Copy) error {
	generation, position, err := r.freeze(ctx, e)
	if err != nil {
		return err
	}
	if err := r.reached("rest"); err != nil {
		return err
	}
	if generation != e.move.Generation { // the old store lost something that came along
		return r.whole(ctx, e)
	}
	if err := e.to.step(ctx, driver.Move{Step: driver.Receive, ID: e.id, Generation: generation, Position: position}); err != nil {
		return err
	}
	if c.Target, err = e.to.open(ctx); err != nil {
		return err
	}
	c.Frozen = e.move.Frozen
	if err := c.Rest(ctx, position); err != nil {
		if errors.Is(err, board.ErrForgotten) {
			return r.whole(ctx, e)
		}
		return err
	}
	if err := c.Documents(ctx); err != nil {
		return err
	}
	return r.compare(ctx, e, c)
}

// whole brings a frozen board from the beginning, where that could not be done before.
func (r *moveRun) whole(ctx context.Context, e *ends) error {
	generation, position, err := r.freeze(ctx, e)
	if err != nil {
		return err
	}
	c, err := r.receive(ctx, e, generation, position)
	if err != nil {
		return err
	}
	c.Frozen = e.move.Frozen
	if err := c.Everything(ctx); err != nil {
		return err
	}
	if err := c.Documents(ctx); err != nil {
		return err
	}
	return r.compare(ctx, e, c)
}

// compare compares both stores, notes that they have the same, and goes on to the new one.
func (r *moveRun) compare(ctx context.Context, e *ends, c *board.Copy) error {
	if err := r.reached("compare"); err != nil {
		return err
	}
	there, err := compareCounts(ctx, e, c.Lost())
	if err != nil {
		return err
	}
	if n, err := e.from.inbox(ctx); err != nil || n > 0 {
		if err == nil {
			err = job.Errorf(job.Precondition, "postings wait in the board's inbox that came while it was frozen: move it again")
		}
		return err
	}
	if err := r.update(ctx, func(m *catalog.Move) {
		m.Compared, m.Jobs, m.Claims, m.Lost = true, there.Open+there.Trashed+there.Ended, there.Claimed, c.Lost()
		m.Total = m.Jobs
	}); err != nil {
		return err
	}
	return r.switchOver(ctx, e)
}

// switchOver leaves the old store, where nobody is told any more how jobs stand, and notes that
// the board is in the new one. Other hosts hear of that a moment later, when jobs may have
// changed there.
func (r *moveRun) switchOver(ctx context.Context, e *ends) error {
	if err := r.reached("leave"); err != nil {
		return err
	}
	if err := e.from.stepOpen(ctx, e.old(driver.Leave)); err != nil {
		return err
	}
	if err := r.reached("switch"); err != nil {
		return err
	}
	return r.update(ctx, func(m *catalog.Move) { m.State = catalog.Switched })
}

// compareCounts compares what both stores say that they have, and returns what the new one
// says. What ended may be forgotten meanwhile.
func compareCounts(ctx context.Context, e *ends, lost int64) (there driver.Counts, err error) {
	here, err := e.from.running.raw.Count(ctx, e.from.key())
	if err == nil {
		there, err = e.to.running.raw.Count(ctx, e.to.key())
	}
	if err == nil && (here.Open != there.Open || here.Trashed != there.Trashed || here.Claimed != there.Claimed+lost) {
		err = job.Errorf(job.Internal, "the new store has %d open jobs, %d of them claimed, and %d in the trash: want %d, %d but for %d that could not come along, and %d",
			there.Open, there.Claimed, there.Trashed, here.Open, here.Claimed, lost, here.Trashed)
	}
	return there, err
}
