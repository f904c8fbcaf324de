package seeded

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// moveBugs are drivers that are wrong when a board goes from store to store.
func moveBugs() []Bug {
	return []Bug{
		{Name: "freezes-nothing", Where: Driver, Doc: "acknowledges that a board is frozen, or has been left, and lets changes through", Checker: "posts", hosts: true, moves: freezesNothing},
		{Name: "move-stuck", Where: Driver, Doc: "says for ever that the store is away when a board that has moved is to be left", Checker: "moves", hosts: true, moves: neverLeft},
		{Name: "moved-tokens-fall", Where: Driver, Doc: "counts the tokens of a board that came from another store from where it is itself", Checker: "fencing", hosts: true, moves: countsAnew},
	}
}

// A moveStep is how a wrong driver takes a step of a move.
type moveStep func(ctx context.Context, d driver.Mover, board string, m driver.Move) error

func rightly(ctx context.Context, d driver.Mover, board string, m driver.Move) error {
	return d.MoveBoard(ctx, board, m)
}

func freezesNothing(ctx context.Context, d driver.Mover, board string, m driver.Move) error {
	switch m.Step {
	case driver.Freeze, driver.Leave, driver.Thaw:
		return nil
	case driver.Receive, driver.Admit:
	}
	return d.MoveBoard(ctx, board, m)
}

func neverLeft(ctx context.Context, d driver.Mover, board string, m driver.Move) error {
	if m.Step == driver.Leave {
		return job.Errorf(job.Unavailable, "the store is away")
	}
	return d.MoveBoard(ctx, board, m)
}

func countsAnew(ctx context.Context, d driver.Mover, board string, m driver.Move) error {
	if of, ok := d.(driver.Driver); ok && m.Step == driver.Receive {
		if n, err := of.Count(ctx, board); err != nil || n.Open+n.Trashed+n.Ended > 0 {
			return err // it receives already
		}
	}
	m.Generation, m.Position = 0, 0
	return d.MoveBoard(ctx, board, m)
}

// The backends between which a board moves.
const (
	home = "store"
	away = "away"
)

// programs are the drivers of a server by their names, in one process those of all servers.
func (bug *Bug) programs(seed uint64) map[string]driver.Program {
	if bug.moves == nil {
		return map[string]driver.Program{"memory": opened(bug.open, seed)}
	}
	wrong := func(d driver.Driver) driver.Driver {
		return &wrongMover{Driver: d, store: d.(*shared).Driver.(driver.Mover), step: bug.moves}
	}
	return map[string]driver.Program{"memory": opened(sharing(wrong), seed), away: opened(sharing(wrong), seed+1)}
}

// wrongMover is a driver that takes the steps of moves in its own way.
type wrongMover struct {
	driver.Driver
	store driver.Mover
	step  moveStep
}

// MoveBoard takes a step.
func (w *wrongMover) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	return w.step(ctx, w.store, board, m)
}

// MoveBoard is the driver's own, where it has one.
func (h *hiccup) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	mover, ok := h.Driver.(driver.Mover)
	if !ok {
		return job.Errorf(job.Unsupported, "no board moves here")
	}
	return mover.MoveBoard(ctx, board, m)
}

// movable makes the board that moves, waits until all servers have it, and returns who moves it.
func (bug *Bug) movable(t testing.TB, recorder *history.Recorder, servers []workload.Server, seed uint64) *workload.Moves {
	t.Helper()
	settings := &boarddv1.BoardSettings{
		Name: board, Backend: home, Lease: durationpb.New(30 * time.Second), MaxLease: durationpb.New(time.Hour),
		IdempotencyWindow: durationpb.New(time.Hour),
	}
	if _, err := servers[0].Client.Admin().CreateBoard(t.Context(), &boarddv1.CreateBoardRequest{Board: settings}); err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		testserver.Eventually(t, s.Name+" has the board that moves", func() bool {
			_, err := s.Client.Board(board).Count(t.Context())
			return err == nil
		})
	}
	return workload.NewMoves(recorder, workload.Movable{Board: board, Backends: []string{home, away}}, servers, seed)
}
