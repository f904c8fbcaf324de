package api

import (
	"context"
	"slices"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

func toBoard(s host.Served) *boarddv1.Board {
	c := s.Config
	answer := &boarddv1.Board{
		Name: c.Name, Backend: c.Backend, Driver: s.Driver, Mode: "serve", Fencing: "token",
		Lease: toDuration(c.Lease), MaxLease: toDuration(c.MaxLease), AllowNoExpiry: c.AllowNoExpiry,
		IdempotencyWindow: toDuration(c.IdempotencyWindow), History: toDuration(c.History),
		MaxAttempts: c.Retry.MaxAttempts, Backoff: toDuration(c.Retry.Backoff), MaxBackoff: toDuration(c.Retry.MaxBackoff),
		Paused: s.Status.Paused, Durability: string(s.Status.Durability), Generation: toInt64(s.Status.Generation),
		Ready: s.Status.Ready, Problem: clean(s.Status.Problem), EffectiveWindow: toDuration(s.Status.Window), Loss: clean(s.Status.Loss),
		Record: toDuration(c.Record), Eligibility: toRules(c.Eligibility...), Limits: toLimits(s.Limits), HideDetails: c.HideDetails, Server: s.Server,
		Resting: s.Rests != nil,
	}
	if c.Retry.Backoff > 0 && c.Retry.MaxBackoff == 0 {
		answer.MaxBackoff = toDuration(job.DefaultMaxBackoff)
	}
	if s.Status.Paused {
		answer.PauseReason = clean(s.Status.Why)
	}
	if c.Ordering != nil {
		answer.Ordering = toRules(*c.Ordering)[0]
	}
	for i := range s.Promoted {
		addPromoted(answer, &s.Promoted[i])
	}
	if c.Observe {
		answer.Mode = "observe"
	}
	if c.FenceByOwner {
		answer.Fencing = "owner"
	}
	return answer
}

// addPromoted adds a policy that a board was given to those of its settings.
func addPromoted(b *boarddv1.Board, d *catalog.Deployed) {
	r := d.Releases[0]
	rule := &boarddv1.PolicyRule{Policy: r.Name, Params: r.Params, OnError: r.OnError, Digest: r.Digest, Promoted: true}
	if d.Eligibility {
		b.Eligibility = append(b.Eligibility, rule)
	}
	if d.Ordering {
		b.Ordering = rule
	}
}

// ListBoards gives the boards that the caller may see, whichever server of the fleet has
// them.
func (s *service) ListBoards(ctx context.Context, r *connect.Request[boarddv1.ListBoardsRequest]) (*connect.Response[boarddv1.ListBoardsResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := session.Check("ListBoards"); err != nil {
		return nil, err
	}
	if err := session.Known(); err != nil {
		return nil, err
	}
	part, err := partOf("boards", r.Msg.GetPageSize())
	if err != nil {
		return nil, err
	}
	counts := r.Msg.GetCounts()
	list, _ := session.List(ctx, host.Listing{After: r.Msg.GetPageToken(), Most: part.limit(), Counts: counts})
	entries, next, err := entriesOf(part, slices.Values(list), func(b host.Served) *boarddv1.Board {
		board := toBoard(b)
		if b.Counts != nil && counts {
			board.Counts, board.Corrupt = toCounts(b.Counts), b.Counts.Corrupt
		}
		return board
	}, func(b host.Served) string { return b.Config.Name })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ListBoardsResponse{Boards: entries, NextPageToken: next})
}

// GetBoard says how a board stands, even one that cannot be served now.
func (s *service) GetBoard(ctx context.Context, r *connect.Request[boarddv1.GetBoardRequest]) (*connect.Response[boarddv1.GetBoardResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	described, err := session.Describe(ctx, r.Msg.GetBoard(), "GetBoard")
	if err != nil {
		return nil, err
	}
	response := &boarddv1.GetBoardResponse{Board: toBoard(described)}
	if described.Status.Ready {
		if b, err := session.Board(ctx, r.Msg.GetBoard(), "GetBoard"); err == nil {
			if counts, err := b.Count(ctx); err == nil { // else it says how the board stands all the same
				response.Board.Corrupt = counts.Corrupt
			}
		}
	}
	return answer(response)
}

// PauseBoard stops a board from granting claims.
func (s *service) PauseBoard(ctx context.Context, r *connect.Request[boarddv1.PauseBoardRequest]) (*connect.Response[boarddv1.PauseBoardResponse], error) {
	described, err := s.change(ctx, r.Msg.GetBoard(), "PauseBoard", func(b *board.Board) error { return b.Pause(ctx, r.Msg.GetReason()) })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PauseBoardResponse{Board: described})
}

// ResumeBoard lets a board grant claims again.
func (s *service) ResumeBoard(ctx context.Context, r *connect.Request[boarddv1.ResumeBoardRequest]) (*connect.Response[boarddv1.ResumeBoardResponse], error) {
	described, err := s.change(ctx, r.Msg.GetBoard(), "ResumeBoard", func(b *board.Board) error { return b.Resume(ctx) })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ResumeBoardResponse{Board: described})
}

// AcknowledgeLoss has a board show a loss no more that somebody knows of now.
func (s *service) AcknowledgeLoss(ctx context.Context, r *connect.Request[boarddv1.AcknowledgeLossRequest]) (*connect.Response[boarddv1.AcknowledgeLossResponse], error) {
	if r.Msg.GetGeneration() < 0 {
		return nil, job.Errorf(job.Invalid, "generation: want at least 0, got %d", r.Msg.GetGeneration())
	}
	described, err := s.change(ctx, r.Msg.GetBoard(), "AcknowledgeLoss", func(b *board.Board) error {
		return b.AcknowledgeLoss(ctx, uint64(r.Msg.GetGeneration()))
	})
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.AcknowledgeLossResponse{Board: described})
}

// change makes a change to a board and returns how it stands after it.
func (s *service) change(ctx context.Context, name, call string, do func(*board.Board) error) (*boarddv1.Board, error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	b, err := session.Board(ctx, name, call)
	if err != nil {
		return nil, err
	}
	if err := do(b); err != nil {
		return nil, err
	}
	described, err := session.Describe(ctx, name, call)
	return toBoard(described), err
}

// WhoAmI says who the caller is.
func (s *service) WhoAmI(ctx context.Context, _ *connect.Request[boarddv1.WhoAmIRequest]) (*connect.Response[boarddv1.WhoAmIResponse], error) {
	session, err := sessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if err := session.Check("WhoAmI"); err != nil {
		return nil, err
	}
	who := session.WhoAmI()
	response := &boarddv1.WhoAmIResponse{Tenant: who.Tenant, TokenName: who.TokenName, Boards: who.Boards}
	limits, use := session.Limits(ctx)
	response.Limits, response.Use = toLimits(limits), use
	for _, role := range who.Roles {
		response.Roles = append(response.Roles, string(role))
	}
	return answer(response)
}
