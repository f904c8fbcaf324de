package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// MovePlan says what a move of a board would be.
type MovePlan struct {
	To           catalog.Home
	Jobs, Claims int64
	Shared       bool     // other programs may look for the jobs where they lie, and are stopped
	Notes        []string // what goes along in another way than one may think, for people
}

// MoveOptions say how a board is to move.
type MoveOptions struct {
	Wait    time.Duration // for claims that cannot come along
	Stopped bool          // other programs that worked on the board were stopped
	Dry     bool          // it is only asked what would be
}

// PlanMove looks whether a board can move to a backend, and how. Unless that is dry it takes the
// place there, and what the board left there when it moved away the last time is gone.
func (h *Host) PlanMove(ctx context.Context, b catalog.Board, backend string, o MoveOptions) (MovePlan, error) {
	var plan MovePlan
	from, err := h.homeOf(ctx, b.Board, &catalog.Home{Backend: b.Backend, Settings: b.Settings, Store: b.Store})
	if err != nil {
		return plan, err
	}
	to, err := h.homeOf(ctx, b.Board, &catalog.Home{Backend: backend})
	if err != nil {
		return plan, err
	}
	if to.Settings, err = catalog.MakeSettings(to.running.info.Board, to.backend.config.Settings, b.Tenant, b.Name); err != nil {
		return plan, err
	}
	if err := h.planShared(ctx, catalog.At{Tenant: b.Tenant, Name: b.Name}, from, o, &plan); err != nil {
		return plan, err
	}
	if left := b.Move; !o.Dry && left != nil && left.State == catalog.Moved {
		if b, err = h.DropLeft(ctx, b); err != nil {
			return plan, err
		}
	}
	if err := h.compareHomes(ctx, &b, from, to, &plan); err != nil || o.Dry {
		return plan, err
	}
	to.Board.Backend = backend
	if err := h.Prepare(ctx, &to.Board); err != nil {
		return plan, err
	}
	plan.To = catalog.Home{Backend: backend, Settings: to.Settings, Store: to.Store}
	return plan, nil
}

// look opens the board at a home without a change there.
func (m *home) look(ctx context.Context) (driver.BoardStatus, driver.Counts, error) {
	status, err := m.running.raw.OpenBoard(ctx, driver.BoardSpec{Name: m.key(), Settings: m.Settings, Window: m.IdempotencyWindow, Observe: true})
	if err != nil {
		return status, driver.Counts{}, err
	}
	counts, err := m.running.raw.Count(ctx, m.key())
	return status, counts, err
}

// compareHomes looks whether everything has a place at the new home.
func (h *Host) compareHomes(ctx context.Context, b *catalog.Board, from, to *home, plan *MovePlan) error {
	r := moveRun{mover: h.mover, at: catalog.At{Tenant: b.Tenant, Name: b.Name}}
	standing, err := r.source(ctx)
	if err != nil {
		return err
	}
	if err := from.movable(ctx, plan.Shared); err != nil {
		return err
	}
	counts, err := from.running.raw.Count(ctx, from.key())
	if err != nil {
		return err
	}
	status, there, err := to.look(ctx)
	if err != nil {
		return err
	}
	left := b.Move != nil && b.Move.State == catalog.Moved && b.Move.From.Backend == to.Backend
	switch {
	case !status.Capabilities.Moves || !status.Capabilities.Imports:
		return job.Errorf(job.Unsupported, "the store of the backend %s takes in no boards of other stores", to.Backend)
	case there.Open+there.Trashed+there.Ended > 0 && !left:
		return job.Errorf(job.Precondition, "the backend %s has jobs of an earlier board %q: make a board of that name there, and delete it with purge", to.Backend, b.Name)
	}
	if !status.Capabilities.Groups {
		if err := h.withoutBatches(ctx, r.at, to.Backend); err != nil {
			return err
		}
	}
	plan.Jobs, plan.Claims = counts.Open+counts.Trashed+counts.Ended, counts.Claimed
	if left {
		plan.Notes = append(plan.Notes, fmt.Sprintf("what the board left in %s when it moved away is dropped", to.Backend))
	}
	if status.Generation > standing.Generation {
		plan.Notes = append(plan.Notes, fmt.Sprintf("the store of %s is in a later generation of the board: claims in hand do not come along, and end when it is frozen", to.Backend))
	}
	if rank(status.Durability) < rank(standing.Durability) {
		plan.Notes = append(plan.Notes, fmt.Sprintf("what is acknowledged is as durable as %q there, and %q here", status.Durability, standing.Durability))
	}
	if most := status.MaxFinals; most > 0 && counts.Finals > most {
		plan.Notes = append(plan.Notes, fmt.Sprintf("the store of %s keeps %d jobs of the history at most, and the board has %d: the oldest are forgotten there", to.Backend, most, counts.Finals))
	}
	if most := status.Capabilities.MaxJobs; most > 0 && counts.Open > most {
		return job.Errorf(job.Precondition, "the store of the backend %s takes %d open jobs, and the board has %d", to.Backend, most, counts.Open)
	}
	return nil
}

// movable asks the store of a board that is served from there whether it lets the board go. It
// says so to a step that changes nothing.
func (m *home) movable(ctx context.Context, shared bool) error {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return m.step(ctx, driver.Move{Step: driver.Thaw, ID: id, Shared: shared})
}

// withoutBatches refuses a board with a batch that is not done.
func (h *Host) withoutBatches(ctx context.Context, at catalog.At, backend string) error {
	on := h.registry.board(at.Tenant, at.Name)
	if on == nil {
		return NoBoard(at.Name)
	}
	b, err := h.Open(ctx, on)
	if err != nil {
		return err
	}
	done := false
	for after, first := "", true; first || after != ""; first = false {
		list, next, err := b.Batches(ctx, after, 1, &done)
		switch {
		case job.KindOf(err) == job.Unsupported:
			return nil // it cannot have any
		case err != nil:
			return err
		case len(list) > 0:
			return job.Errorf(job.Precondition, "the batch %.80q of the board is not done, and the store of the backend %s counts no batches: want it done before the board moves", list[0].Name, backend)
		}
		after = next
	}
	return nil
}

// rank orders durabilities.
func rank(d driver.Durability) int {
	return slices.Index([]driver.Durability{driver.Volatile, driver.Delayed, driver.Durable, driver.Replicated}, d)
}

// BeganMove has this host go on with a move that was begun by it.
func (h *Host) BeganMove(b catalog.Board) {
	h.mover.note(catalog.At{Tenant: b.Tenant, Name: b.Name}, b.Move)
}

// Unplace frees the place that PlanMove took.
func (h *Host) Unplace(ctx context.Context, b config.Board, to catalog.Home) error {
	at, err := h.homeOf(ctx, b, &to)
	if err != nil {
		return err
	}
	return at.backend.placesIn(at.running.driver.Documents()).Vacate(ctx, catalog.LocationOf(at.Settings, at.key()), b.Tenant, b.Name)
}

// DropLeft takes away what a board left in its old store when it moved, and returns its record
// as it is then.
func (h *Host) DropLeft(ctx context.Context, b catalog.Board) (catalog.Board, error) {
	c, err := h.Catalog(ctx)
	if err != nil {
		return b, err
	}
	if b.Move == nil || b.Move.State != catalog.Moved {
		return b, job.Errorf(job.Precondition, "the board %q left nothing in another store", b.Name)
	}
	from, err := h.homeOf(ctx, b.Board, &b.Move.From)
	if err != nil {
		return b, err
	}
	if err := h.Reaches(from.Board); err != nil { // this server may have another store by that name
		return b, err
	}
	if err := h.dropLeft(ctx, from); err != nil {
		return b, err
	}
	left := b.Move.ID
	return c.Amend(ctx, catalog.At{Tenant: b.Tenant, Name: b.Name}, func(b *catalog.Board) error {
		switch {
		case b.Move == nil || b.Move.ID != left:
			return job.Errorf(job.Precondition, "the board %q moves again", b.Name)
		case b.Move.State == catalog.Dropped:
			return catalog.ErrStands
		}
		b.Move.State = catalog.Dropped
		return nil
	})
}

// MaxMoveWait is how long a move waits at most for claims that cannot come along.
const MaxMoveWait = 24 * time.Hour

// MoveWords is a state of a move as the API has it.
func MoveWords(s catalog.MoveState) string { return strings.ToUpper(string(s)) }
