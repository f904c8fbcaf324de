package admin

import (
	"context"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
)

// MoveBoard begins to move a board to another backend, and returns its move and what is to be
// known of it. Where that is dry nothing is begun, and the move has only its numbers.
func (s *Session) MoveBoard(ctx context.Context, of, name, backend string, o host.MoveOptions) (catalog.Move, []string, error) {
	b, c, err := s.boardForChange(ctx, "MoveBoard", of, name, 0)
	if err == nil {
		b, err = c.Reread(ctx, catalog.At{Tenant: b.Tenant, Name: b.Name}) // another server may have ended a move just now
	}
	if err != nil {
		return catalog.Move{}, nil, err
	}
	switch {
	case o.Wait < 0 || o.Wait > host.MaxMoveWait:
		return catalog.Move{}, nil, job.Errorf(job.Invalid, "claimsWait: want 0s to %s, got %s", seconds(host.MaxMoveWait), seconds(o.Wait))
	case b.Observe:
		return catalog.Move{}, nil, job.Errorf(job.Precondition, "the board %q only observes a place that is another's: nothing of it can move", b.Name)
	case b.Backend == backend:
		return catalog.Move{}, nil, job.Errorf(job.Precondition, "the board %q is on %s already", b.Name, backend)
	case b.Move.Active():
		return *b.Move, nil, moving(&b)
	}
	if err := s.checkBackend(b.Tenant, backend); err != nil {
		return catalog.Move{}, nil, err
	}
	plan, err := s.host.PlanMove(ctx, b, backend, o)
	if err != nil {
		return catalog.Move{}, nil, s.placeError(b.Board, err)
	}
	if o.Dry {
		return catalog.Move{From: catalog.Home{Backend: b.Backend}, To: catalog.Home{Backend: backend}, Total: plan.Jobs, Claims: plan.Claims}, plan.Notes, nil
	}
	at := catalog.At{Tenant: b.Tenant, Name: b.Name}
	begun, err := beginMove(ctx, c, at, catalog.Move{
		To: plan.To, By: s.principal.Tenant + "/" + s.principal.TokenName, Wait: o.Wait, Shared: plan.Shared, Total: plan.Jobs, Host: s.host.ID(),
	})
	if err != nil {
		if other, look := c.Reread(ctx, at); look == nil && !other.Move.Active() {
			_ = s.host.Unplace(ctx, b.Board, plan.To) // else the place is this board's, and nobody's harm
		}
		return catalog.Move{}, nil, err
	}
	s.host.BeganMove(begun)
	return *begun.Move, plan.Notes, nil
}

// beginMove notes that a board is to move.
func beginMove(ctx context.Context, c *catalog.Catalog, at catalog.At, m catalog.Move) (catalog.Board, error) {
	m.ID = catalog.NewMoveID()
	return c.Amend(ctx, at, func(b *catalog.Board) error {
		if b.Move.Active() {
			if b.Move.ID == m.ID {
				return catalog.ErrStands
			}
			return moving(b)
		}
		b.Begin(m)
		return nil
	})
}

// moving refuses to begin the move of a board that is on the move.
func moving(b *catalog.Board) error {
	return job.Errorf(job.Precondition, "the board %q is moving to %s already: wait for that, or give it up (boardd board move --abandon)", b.Name, b.Move.To.Backend)
}

// DropMoved takes away at once what a board left in its old store.
func (s *Session) DropMoved(ctx context.Context, of, name string) (catalog.Move, error) {
	b, _, err := s.boardForChange(ctx, "MoveBoard", of, name, 0)
	if err != nil {
		return catalog.Move{}, err
	}
	b, err = s.host.DropLeft(ctx, b)
	if err != nil {
		return catalog.Move{}, err
	}
	return *b.Move, nil
}

// Move returns the last move of a board.
func (s *Session) Move(ctx context.Context, of, name string) (catalog.Move, error) {
	b, _, err := s.boardForChange(ctx, "GetMove", of, name, 0)
	if err != nil {
		return catalog.Move{}, err
	}
	if b.Move == nil {
		return catalog.Move{}, job.Errorf(job.NotFound, "the board %q has never moved", b.Name)
	}
	return *b.Move, nil
}

// AbandonMove gives a move up, as long as the board is in its old store.
func (s *Session) AbandonMove(ctx context.Context, of, name string) (catalog.Move, error) {
	b, c, err := s.boardForChange(ctx, "AbandonMove", of, name, 0)
	if err != nil {
		return catalog.Move{}, err
	}
	b, err = c.Amend(ctx, catalog.At{Tenant: b.Tenant, Name: b.Name}, func(b *catalog.Board) error {
		switch {
		case b.Move == nil || b.Move.State == catalog.Moved || b.Move.State == catalog.Dropped:
			return job.Errorf(job.Precondition, "the board %q is not moving: where it is now, going back is another move", b.Name)
		case b.Move.State == catalog.Switched:
			return job.Errorf(job.Precondition, "the board %q is on %s already: going back is another move", b.Name, b.Backend)
		case !b.Move.Active() || b.Move.State == catalog.Abandoning:
			return catalog.ErrStands
		}
		b.Move.State, b.Move.Problem = catalog.Abandoning, "given up by "+s.principal.Tenant+"/"+s.principal.TokenName
		return nil
	})
	if err != nil {
		return catalog.Move{}, err
	}
	return *b.Move, nil
}
