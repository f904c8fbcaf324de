package host

import (
	"context"
	"fmt"
	"strings"
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

// stepOpen takes a step with a board that may not be open here.
func (m *home) stepOpen(ctx context.Context, step driver.Move) error {
	err := m.step(ctx, step)
	if job.KindOf(err) == job.Precondition {
		if _, err = m.open(ctx); err == nil {
			err = m.step(ctx, step)
		}
	}
	return err
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

// position returns how far the board has come there.
func (m *home) position(ctx context.Context) (at driver.Position, err error) {
	for page, err := range m.running.raw.Scan(ctx, m.key(), driver.ScanRequest{Limit: 1}) {
		if err != nil {
			return 0, err
		}
		at = page.Position
	}
	return at, nil
}

// ends are the two homes of a board that moves.
type ends struct {
	from, to *home
	move     catalog.Move
	id       [16]byte // the move's, as drivers take it
}

// ends returns both ends of the move.
func (r *moveRun) ends(ctx context.Context) (e ends, err error) {
	r.mu.Lock()
	b := r.board
	r.mu.Unlock()
	e.move = *b.Move
	if e.id, err = moveID(&e.move); err != nil {
		return e, err
	}
	if e.from, err = r.host.homeOf(ctx, b.Board, &b.Move.From); err == nil {
		e.to, err = r.host.homeOf(ctx, b.Board, &b.Move.To)
	}
	return e, err
}

// opened opens the board where it is served, if this host does not serve it already.
func (r *moveRun) opened(ctx context.Context) (*board.Board, error) {
	on := r.host.registry.board(r.at.Tenant, r.at.Name)
	if on == nil {
		return nil, NoBoard(r.at.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	b, err := r.host.Open(ctx, on)
	if err != nil {
		return nil, err
	}
	return b, b.Ready(ctx)
}

// source is how the board stands where it is served.
func (r *moveRun) source(ctx context.Context) (board.Status, error) {
	b, err := r.opened(ctx)
	if err != nil {
		return board.Status{}, err
	}
	return b.Status(), nil
}

// prepare makes both ends ready, and waits for claims that cannot come along.
func (r *moveRun) prepare(ctx context.Context) error {
	if err := r.reached("prepare"); err != nil {
		return err
	}
	e, err := r.ends(ctx)
	if err != nil {
		return err
	}
	from, to := e.from, e.to
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
	if later := there.Generation > standing.Generation; later && counts.Claimed > 0 && time.Since(e.move.Begun) < e.move.Wait {
		return job.Errorf(job.Unavailable, "%d claims cannot come along, and are waited for", counts.Claimed)
	}
	return r.update(ctx, func(m *catalog.Move) {
		m.State, m.Total, m.Jobs, m.Problem = catalog.Copying, counts.Open+counts.Trashed+counts.Ended, 0, ""
	})
}

// admit opens the board in its new store.
func (r *moveRun) admit(ctx context.Context) error {
	e, err := r.ends(ctx)
	if err != nil {
		return err
	}
	late, err := r.empty(ctx, &e)
	if err != nil {
		return err
	}
	if err := r.reached("admit"); err != nil {
		return err
	}
	if err := e.to.stepOpen(ctx, driver.Move{Step: driver.Admit, ID: e.id}); err != nil {
		return err
	}
	if err := r.reached("admitted"); err != nil {
		return err
	}
	frozen := time.Since(e.move.Frozen)
	r.logger.Info("the board has moved", "from", e.move.From.Backend, "to", e.move.To.Backend, "jobs", e.move.Jobs, "claims", e.move.Claims,
		"lost_claims", e.move.Lost, "frozen_for", frozen)
	return r.update(ctx, func(m *catalog.Move) {
		m.State, m.Ended, m.FrozenFor, m.Problem = catalog.Moved, time.Now().UTC(), frozen, late
	})
}

// undo has the board go on in its old store, and takes away what is in the new one. Where that
// cannot be it is noted, after a while, for who purges the board.
func (r *moveRun) undo(ctx context.Context) error {
	if err := r.reached("thaw"); err != nil {
		return err
	}
	e, away := r.ends(ctx)
	if e.from == nil {
		return away
	}
	if _, err := r.source(ctx); err != nil {
		return err
	}
	if err := e.from.step(ctx, e.old(driver.Thaw)); err != nil {
		return err
	}
	frozen := time.Duration(0)
	if !e.move.Frozen.IsZero() {
		frozen = time.Since(e.move.Frozen)
	}
	if err := r.reached("clear"); err != nil {
		return err
	}
	if away == nil {
		away = e.to.clear(ctx)
	}
	problem := e.move.Problem
	if away != nil {
		left, err := r.leave(ctx, &e.move, away)
		if err != nil {
			return err
		}
		problem = strings.TrimPrefix(problem+"; "+left, "; ")
	}
	r.logger.Warn("the move of the board was given up", "from", e.move.From.Backend, "to", e.move.To.Backend, "problem", problem)
	return r.update(ctx, func(m *catalog.Move) {
		m.State, m.Ended, m.FrozenFor, m.Problem = catalog.Abandoned, time.Now().UTC(), frozen, problem
	})
}

// leave notes that the new store keeps what was brought, once it could not be taken away for as long
// as moves are tried. Until then it returns why not.
func (r *moveRun) leave(ctx context.Context, move *catalog.Move, why error) (left string, err error) {
	if r.kept.IsZero() {
		r.kept = time.Now()
	}
	if time.Since(r.kept) < r.giveUp {
		return "", why
	}
	r.mu.Lock()
	b := r.board.Board
	r.mu.Unlock()
	b.Backend, b.Settings, b.Store = move.To.Backend, move.To.Settings, move.To.Store
	if err := r.host.catalog.open().Leave(ctx, catalog.RemainsOf(b)); err != nil {
		return "", err
	}
	return fmt.Sprintf("the backend %s keeps what was brought until the board is purged: %v", b.Backend, why), nil
}

// empty takes away what the home has of the board.
func (m *home) empty(ctx context.Context) error {
	if _, err := m.open(ctx); err != nil { // a driver that was restarted may not know it
		return err
	}
	return m.running.driver.DropBoard(ctx, m.key())
}

// clear does so, and frees its place.
func (m *home) clear(ctx context.Context) error {
	if err := m.empty(ctx); err != nil {
		return err
	}
	return m.backend.placesIn(m.running.driver.Documents()).Vacate(ctx, catalog.LocationOf(m.Settings, m.key()), m.Tenant, m.Name)
}

// drop takes away what the board left in its old store.
func (r *moveRun) drop(ctx context.Context) error {
	e, err := r.ends(ctx)
	if err != nil {
		return err
	}
	if err := r.host.dropLeft(ctx, e.from); err != nil {
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
		servers, err := catalog.Servers(ctx, m.running.driver.Documents(), []catalog.Use{use})
		if err != nil {
			return err
		}
		if served = served || len(h.placeInfo(m.backend, use, servers[0]).Servers) > 0; !served {
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
