package host

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// A home is a place of a board that can be reached: a backend that runs.
type home struct {
	config.Board // as it is there

	backend *backend
	running *running
}

// homeOf returns a home of a board as soon as its backend runs.
func (h *Host) homeOf(ctx context.Context, b config.Board, at *catalog.Home) (*home, error) {
	on, r, err := h.runningBackend(ctx, at.Backend)
	if err != nil {
		return nil, err
	}
	if r.mover == nil {
		return nil, job.Errorf(job.Unsupported, "the driver %s of the backend %s has no boards that move", r.info.Name, at.Backend)
	}
	b.Backend, b.Settings, b.Store = at.Backend, at.Settings, at.Store
	return &home{b, on, r}, nil
}

func (m *home) key() string { return m.Tenant + "/" + m.Name }

// open opens the board there for the mover alone. It goes past what this host remembers of
// the board, which may be from before the board left that store.
func (m *home) open(ctx context.Context) (driver.BoardStatus, error) {
	return m.running.raw.OpenBoard(ctx, driver.BoardSpec{
		Name: m.key(), Settings: m.Settings, Window: m.IdempotencyWindow, MaxFinals: board.DefaultMaxHistoryEntries, MaxFinalBytes: board.DefaultMaxHistoryBytes,
	})
}

func (m *home) step(ctx context.Context, step driver.Move) error {
	return m.running.mover.MoveBoard(ctx, m.key(), step)
}

// inbox returns how many postings wait there that somebody else's transactions left.
func (m *home) inbox(ctx context.Context) (n int, err error) {
	status, err := m.open(ctx)
	if err != nil || !status.Capabilities.Inbox {
		return 0, err
	}
	for page, err := range m.running.raw.Scan(ctx, m.key(), driver.ScanRequest{Set: driver.InboxPostings, Limit: 1}) {
		if err != nil {
			return n, err
		}
		n += len(page.Records)
	}
	return n, nil
}

// homes returns both ends of the move.
func (r *moveRun) homes(ctx context.Context) (from, to *home, err error) {
	r.mu.Lock()
	b := r.board
	r.mu.Unlock()
	if from, err = r.host.homeOf(ctx, b.Board, &b.Move.From); err != nil {
		return nil, nil, err
	}
	to, err = r.host.homeOf(ctx, b.Board, &b.Move.To)
	return from, to, err
}

// source opens the board where it is served, if this host does not serve it already.
func (r *moveRun) source(ctx context.Context) (board.Status, error) {
	on := r.host.registry.board(r.at.Tenant, r.at.Name)
	if on == nil {
		return board.Status{}, NoBoard(r.at.Name)
	}
	b, err := r.host.Open(ctx, on)
	if err != nil {
		return board.Status{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	if err := b.Ready(ctx); err != nil {
		return board.Status{}, err
	}
	return b.Status(), nil
}

// prepare makes both ends ready, and waits for claims that cannot come along.
func (r *moveRun) prepare(ctx context.Context) error {
	if err := r.reached("prepare"); err != nil {
		return err
	}
	from, to, err := r.homes(ctx)
	if err != nil {
		return err
	}
	if err := to.backend.place(ctx, r.host, to.running.driver.Documents(), to.Board); err != nil {
		return err
	}
	to.backend.known.Forget(to.key())
	standing, err := r.source(ctx)
	if err != nil {
		return err
	}
	there, err := to.open(ctx)
	if err != nil {
		return err
	}
	counts, err := from.running.raw.Count(ctx, from.key())
	if err != nil {
		return err
	}
	move := r.present()
	if later := there.Generation > standing.Generation; later && counts.Claimed > 0 && time.Since(move.Begun) < move.Wait {
		return job.Errorf(job.Unavailable, "%d claims cannot come along, and are waited for", counts.Claimed)
	}
	return r.update(ctx, func(m *catalog.Move) {
		m.State, m.Frozen = catalog.Copying, time.Now().UTC()
		m.Total, m.Jobs, m.Problem = counts.Open+counts.Trashed+counts.Ended, 0, ""
	})
}

// copy freezes the board, brings everything to the new store, compares, and switches.
func (r *moveRun) copy(ctx context.Context) error {
	if err := r.reached("freeze"); err != nil {
		return err
	}
	from, to, err := r.homes(ctx)
	if err != nil {
		return err
	}
	move := r.present()
	id, err := moveID(&move)
	if err != nil {
		return err
	}
	standing, err := r.source(ctx)
	if err != nil {
		return err
	}
	if err := from.step(ctx, driver.Move{Step: driver.Freeze, ID: id}); err != nil {
		return err
	}
	if err := r.reached("documents"); err != nil {
		return err
	}
	there, err := to.open(ctx)
	if err != nil {
		return err
	}
	c := &board.Copy{
		From: from.running.raw, To: to.running.raw, Key: from.key(), Move: id, Target: there,
		History: to.History, Frozen: move.Frozen, Progress: func(jobs int64) { r.jobs.Store(jobs) },
	}
	if on := r.host.registry.board(r.at.Tenant, r.at.Name); on != nil && there.Capabilities.Limits {
		c.Counted = on.quota.Counted
	}
	if err := c.Documents(ctx); err != nil {
		return err
	}
	if err := r.receive(ctx, c, from, to, standing.Generation); err != nil {
		return err
	}
	if err := r.reached("jobs"); err != nil {
		return err
	}
	sum, err := c.Jobs(ctx)
	if err != nil {
		return err
	}
	if err := r.reached("compare"); err != nil {
		return err
	}
	if err := compareCounts(ctx, from, to, &sum); err != nil {
		return err
	}
	if n, err := from.inbox(ctx); err != nil || n > 0 {
		if err == nil {
			err = job.Errorf(job.Precondition, "postings wait in the board's inbox that came while it was frozen: move it again")
		}
		return err
	}
	if err := r.reached("switch"); err != nil {
		return err
	}
	return r.update(ctx, func(m *catalog.Move) {
		m.State, m.Jobs, m.Claims, m.Lost = catalog.Switched, sum.Open+sum.Trashed+sum.Ended, sum.Claimed, sum.Lost
		m.Total = m.Jobs
	})
}

// receive has the new board take in jobs, from behind everything that the old one told.
func (r *moveRun) receive(ctx context.Context, c *board.Copy, from, to *home, generation uint64) error {
	if err := r.reached("receive"); err != nil {
		return err
	}
	var position driver.Position
	for page, err := range from.running.raw.Scan(ctx, from.key(), driver.ScanRequest{Limit: 1}) {
		if err != nil {
			return err
		}
		position = page.Position
	}
	if err := to.step(ctx, driver.Move{Step: driver.Receive, ID: c.Move, Generation: generation, Position: position}); err != nil {
		return err
	}
	var err error
	c.Target, err = to.open(ctx)
	return err
}

// compareCounts compares what both stores say that they have. What ended may be forgotten meanwhile.
func compareCounts(ctx context.Context, from, to *home, sum *board.Copied) error {
	here, err := from.running.raw.Count(ctx, from.key())
	if err != nil {
		return err
	}
	there, err := to.running.raw.Count(ctx, to.key())
	if err != nil {
		return err
	}
	if here.Open != there.Open || here.Trashed != there.Trashed || there.Open != sum.Open || there.Trashed != sum.Trashed || there.Claimed != sum.Claimed {
		return job.Errorf(job.Internal, "the new store has %d open jobs, %d of them claimed, and %d in the trash, and %d, %d and %d were brought of %d and %d",
			there.Open, there.Claimed, there.Trashed, sum.Open, sum.Claimed, sum.Trashed, here.Open, here.Trashed)
	}
	return nil
}

// admit opens the board in its new store.
func (r *moveRun) admit(ctx context.Context) error {
	if err := r.reached("admit"); err != nil {
		return err
	}
	_, to, err := r.homes(ctx)
	if err != nil {
		return err
	}
	move := r.present()
	id, err := moveID(&move)
	if err != nil {
		return err
	}
	step := driver.Move{Step: driver.Admit, ID: id}
	err = to.step(ctx, step)
	if job.KindOf(err) == job.Precondition { // it may only not be open here
		if _, err = to.open(ctx); err == nil {
			err = to.step(ctx, step)
		}
	}
	if err != nil {
		return err
	}
	if err := r.reached("admitted"); err != nil {
		return err
	}
	r.logger.Info("the board has moved", "from", move.From.Backend, "to", move.To.Backend, "jobs", move.Jobs, "claims", move.Claims, "lost_claims", move.Lost)
	return r.update(ctx, func(m *catalog.Move) { m.State, m.Ended, m.Problem = catalog.Moved, time.Now().UTC(), "" })
}

// undo has the board go on in its old store, and takes away what is in the new one.
func (r *moveRun) undo(ctx context.Context) error {
	if err := r.reached("thaw"); err != nil {
		return err
	}
	from, to, err := r.homes(ctx)
	if err != nil {
		return err
	}
	move := r.present()
	id, err := moveID(&move)
	if err != nil {
		return err
	}
	if _, err := r.source(ctx); err != nil {
		return err
	}
	if err := from.step(ctx, driver.Move{Step: driver.Thaw, ID: id}); err != nil {
		return err
	}
	if err := r.reached("clear"); err != nil {
		return err
	}
	if err := to.clear(ctx); err != nil {
		return err
	}
	r.logger.Warn("the move of the board was given up", "from", move.From.Backend, "to", move.To.Backend, "problem", move.Problem)
	return r.update(ctx, func(m *catalog.Move) { m.State, m.Ended = catalog.Abandoned, time.Now().UTC() })
}

// clear takes away what the home has of the board, and frees its place.
func (m *home) clear(ctx context.Context) error {
	if _, err := m.open(ctx); err != nil { // a driver that was restarted may not know it
		return err
	}
	if err := m.running.driver.DropBoard(ctx, m.key()); err != nil {
		return err
	}
	return m.backend.placesIn(m.running.driver.Documents()).Vacate(ctx, catalog.LocationOf(m.Settings, m.key()), m.Tenant, m.Name)
}

// drop takes away what the board left in its old store.
func (r *moveRun) drop(ctx context.Context) error {
	from, _, err := r.homes(ctx)
	if err != nil {
		return err
	}
	if err := r.host.dropLeft(ctx, from); err != nil {
		return err
	}
	return r.update(ctx, func(m *catalog.Move) { m.State = catalog.Dropped })
}

// servedWithin is how long servers may take to see that a board has moved.
const servedWithin = 15 * time.Second

// unserved waits until no server serves the board at the home any more: who does would make it
// anew there.
func (h *Host) unserved(ctx context.Context, m *home) error {
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	use := catalog.Use{Location: catalog.LocationOf(m.Settings, m.key()).String(), Tenant: m.Tenant, Board: m.Name}
	for {
		served := h.registry.serves(m)
		hosts, err := catalog.Hosts(ctx, m.running.driver.Documents())
		if err != nil {
			return err
		}
		if served = served || len(h.placeInfo(m.backend, use, hosts).Servers) > 0; !served {
			return nil
		}
		if sleep.For(ctx, 20*time.Millisecond) != nil {
			return job.Errorf(job.Unavailable, "the board is still served from its old store: try again")
		}
	}
}

// serves reports whether this host has the board open at a home that it leaves.
func (s *registry) serves(m *home) (served bool) {
	if b := s.board(m.Tenant, m.Name); b != nil && b.backend == m.backend {
		return true
	}
	s.retired.Range(func(b, _ any) bool {
		old := b.(*Hosted) //nolint:forcetypeassert // nothing else is kept there
		served = served || old.backend == m.backend && old.key() == m.key()
		return !served
	})
	return served
}

// dropLeft takes away what a board left, unless postings wait there that nobody posts.
func (h *Host) dropLeft(ctx context.Context, m *home) error {
	if err := h.unserved(ctx, m); err != nil {
		return err
	}
	n, err := m.inbox(ctx)
	if err == nil && n > 0 {
		err = job.Errorf(job.Precondition, "postings wait in the inbox of the old store, by transactions that ended after the board was frozen: see the view left_postings")
	}
	if err != nil {
		return err
	}
	return m.clear(ctx)
}
