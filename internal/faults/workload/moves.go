package workload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Moves is somebody who moves a board from store to store, again and again, each time through
// one of the servers, and now and then gives a move up.
type Moves struct {
	Movable

	recorder *history.Recorder
	servers  []Server
	random   *rand.Rand

	made []*history.Move
}

// Movable is a board, and the backends between which it moves, the present one first.
type Movable struct {
	Tenant, Board string // of the token's own tenant if there is none
	Backends      []string
}

// lookPause is how long somebody waits who looks how far a move is.
const lookPause = 50 * time.Millisecond

// NewMoves moves nothing yet.
func NewMoves(recorder *history.Recorder, board Movable, servers []Server, seed uint64) *Moves {
	return &Moves{
		Movable: board, recorder: recorder, servers: servers,
		random: rand.New(rand.NewPCG(seed, 0x30e5)), //nolint:gosec // a run that can be made again
	}
}

// Run moves the board until ctx ends.
func (m *Moves) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if sleep.For(ctx, time.Duration(m.random.IntN(400))*time.Millisecond) != nil {
			return
		}
		to := m.Backends[m.random.IntN(len(m.Backends))] // where the board is already is refused
		if move := m.begin(ctx, to); move != nil {
			m.follow(ctx, move, m.random.IntN(6) == 0)
		}
	}
}

func (m *Moves) server() Server { return m.servers[m.random.IntN(len(m.servers))] }

// begin asks for a move. It is nil if the move surely was not begun.
func (m *Moves) begin(ctx context.Context, to string) *history.Move {
	move := &history.Move{Board: m.Board, To: to, Begin: m.recorder.Now().At, End: history.Forever}
	answer, err := m.server().Client.Admin().MoveBoard(ctx, &boarddv1.MoveBoardRequest{Tenant: m.Tenant, Board: m.Board, Backend: to})
	switch kind := job.KindOf(err); {
	case err == nil:
		move.State = answer.GetMove().GetState()
	case kind != job.Unavailable && kind != job.OutcomeUnknown && kind != job.Interrupted && kind != job.Internal:
		return nil
	}
	m.made = append(m.made, move)
	return move
}

// follow looks how far a move is until it has ended, or ctx has.
func (m *Moves) follow(ctx context.Context, move *history.Move, giveUp bool) {
	for sleep.For(ctx, lookPause) == nil {
		if giveUp {
			_, _ = m.server().Client.Admin().AbandonMove(ctx, &boarddv1.AbandonMoveRequest{Tenant: m.Tenant, Board: m.Board}) // if it is not too late
		}
		if m.look(ctx, move) {
			return
		}
	}
}

// look writes down how far a move is, and reports whether the board's last one has ended.
func (m *Moves) look(ctx context.Context, move *history.Move) bool {
	answer, err := m.server().Client.Admin().GetMove(ctx, &boarddv1.GetMoveRequest{Tenant: m.Tenant, Board: m.Board})
	state := answer.GetMove().GetState()
	if err != nil {
		return job.KindOf(err) == job.NotFound // there was none yet
	}
	switch to := answer.GetMove().GetTo(); {
	case state == "" || to == move.To:
		move.State = state
	case move.State != "": // the server has not heard of it, and shows the one before
		return false
	}
	switch state {
	case "PREPARING", "COPYING", "FREEZING", "SWITCHED", "ABANDONING":
		return false
	}
	move.End = m.recorder.Now().At
	return true
}

// Rest waits, when nothing is broken any more, until the last move has ended. One that does
// not within the patience is written down as one that never does.
func (m *Moves) Rest(ctx context.Context, patience time.Duration) error {
	r := &resting{recorder: m.recorder, patience: patience}
	var err error
	if n := len(m.made); n > 0 {
		err = r.until(ctx, func() (bool, error) { return m.look(ctx, m.made[n-1]), nil })
	}
	m.recorder.Change(func(h *history.History) {
		for i, move := range m.made {
			if i < len(m.made)-1 && move.End == history.Forever {
				move.End = m.made[i+1].Begin // another one was begun
			}
			h.Moves = append(h.Moves, *move)
		}
	})
	return err
}
