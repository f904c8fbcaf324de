package api

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// PutBatch says what follows a batch, and with how many jobs it is complete.
func (s *service) PutBatch(ctx context.Context, r *connect.Request[boarddv1.PutBatchRequest]) (*connect.Response[boarddv1.PutBatchResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "PutBatch")
	if err != nil {
		return nil, err
	}
	var then *job.Posting
	if r.Msg.Then != nil {
		p, err := fromPosting(r.Msg.GetThen())
		if err != nil {
			return nil, inField("then", err)
		}
		then = &p
	}
	put, err := b.PutBatch(ctx, r.Msg.GetName(), then, r.Msg.GetExpected())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.PutBatchResponse{Batch: toBatch(&put)})
}

// GetBatch says how a batch stands, perhaps once it is done.
func (s *service) GetBatch(ctx context.Context, r *connect.Request[boarddv1.GetBatchRequest]) (*connect.Response[boarddv1.GetBatchResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "GetBatch")
	if err != nil {
		return nil, err
	}
	wait, err := waitOf(ctx, r.Msg.GetWait())
	if err != nil {
		return nil, err
	}
	var got board.Batch
	err = s.waiting(ctx, wait, func(ctx context.Context, wait time.Duration) (err error) {
		got, err = b.Batch(ctx, r.Msg.GetName(), wait)
		return err
	}, true)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.GetBatchResponse{Batch: toBatch(&got)})
}

// CloseBatch lets no more jobs into a batch.
func (s *service) CloseBatch(ctx context.Context, r *connect.Request[boarddv1.CloseBatchRequest]) (*connect.Response[boarddv1.CloseBatchResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "CloseBatch")
	if err != nil {
		return nil, err
	}
	closed, err := b.CloseBatch(ctx, r.Msg.GetName())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.CloseBatchResponse{Batch: toBatch(&closed)})
}

// ListBatches gives one page of a board's batches.
func (s *service) ListBatches(ctx context.Context, r *connect.Request[boarddv1.ListBatchesRequest]) (*connect.Response[boarddv1.ListBatchesResponse], error) {
	b, err := s.boardOf(ctx, r.Msg.GetBoard(), "ListBatches")
	if err != nil {
		return nil, err
	}
	most, err := listed(r.Msg.GetPageSize())
	if err != nil {
		return nil, err
	}
	list, next, err := b.Batches(ctx, r.Msg.GetPageToken(), most, r.Msg.Done)
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ListBatchesResponse{NextPageToken: next}
	for i := range list {
		response.Batches = append(response.Batches, toBatch(&list[i]))
	}
	return answer(response)
}

func toBatch(b *board.Batch) *boarddv1.Batch {
	g := &b.Group
	shown := &boarddv1.Batch{
		Name: clean(b.Name), Posted: g.Posted(), Open: g.Open, Consumed: g.Consumed, Canceled: g.Canceled, Failed: g.Failed,
		Trashed: g.Trashed, Purged: g.Purged, Closed: g.Closed, Done: b.Done(), Expected: b.Expected, Problem: clean(b.Problem),
	}
	if b.Then != nil {
		shown.Then = toPosting(b.Then)
	}
	if b.ThenID != (job.ID{}) {
		shown.ThenUuid = b.ThenID.String()
	}
	return shown
}
