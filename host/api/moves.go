package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// MoveBoard begins to move a board to another backend.
func (a *adminService) MoveBoard(ctx context.Context, r *connect.Request[boarddv1.MoveBoardRequest]) (*connect.Response[boarddv1.MoveBoardResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	wait, err := fromDuration("claimsWait", r.Msg.GetClaimsWait(), 0)
	if err != nil {
		return nil, session.Unless("MoveBoard", err)
	}
	if r.Msg.GetDrop() {
		m, err := session.DropMoved(ctx, r.Msg.GetTenant(), r.Msg.GetBoard())
		if err != nil {
			return nil, err
		}
		return answer(&boarddv1.MoveBoardResponse{Move: toMove(&m)})
	}
	m, notes, err := session.MoveBoard(ctx, r.Msg.GetTenant(), r.Msg.GetBoard(), r.Msg.GetBackend(), host.MoveOptions{
		Wait: wait, Stopped: r.Msg.GetTaskflowStopped(), Dry: r.Msg.GetDryRun(),
	})
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.MoveBoardResponse{Move: toMove(&m), Notes: notes})
}

// GetMove gives the last move of a board.
func (a *adminService) GetMove(ctx context.Context, r *connect.Request[boarddv1.GetMoveRequest]) (*connect.Response[boarddv1.GetMoveResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	m, err := session.Move(ctx, r.Msg.GetTenant(), r.Msg.GetBoard())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.GetMoveResponse{Move: toMove(&m)})
}

// AbandonMove gives the move of a board up.
func (a *adminService) AbandonMove(ctx context.Context, r *connect.Request[boarddv1.AbandonMoveRequest]) (*connect.Response[boarddv1.AbandonMoveResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	m, err := session.AbandonMove(ctx, r.Msg.GetTenant(), r.Msg.GetBoard())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.AbandonMoveResponse{Move: toMove(&m)})
}

func toMove(m *catalog.Move) *boarddv1.Move {
	return &boarddv1.Move{
		State: host.MoveWords(m.State), From: m.From.Backend, To: m.To.Backend, Jobs: m.Jobs, Total: m.Total,
		Claims: m.Claims, LostClaims: m.Lost, Problem: m.Problem,
		BegunAt: toTime(m.Begun), FrozenAt: toTime(m.Frozen), EndedAt: toTime(m.Ended), FrozenFor: toDuration(m.FrozenFor), Rounds: m.Rounds,
	}
}
