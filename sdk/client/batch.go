package client

import (
	"context"
	"iter"
	"time"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// PutBatch says what is posted once a batch is closed and none of its jobs is open (nil:
// nothing), and after how many posted jobs it is closed (0: by CloseBatch). A then without a
// UUID gets one from the server. The call may come twice.
func (b *Board) PutBatch(ctx context.Context, name string, then *NewJob, expected int64) (*Batch, error) {
	answer, err := call(ctx, b.client, "put batch", 0, b.client.rpc.PutBatch,
		&boarddv1.PutBatchRequest{Board: b.name, Name: name, Then: then, Expected: expected})
	return answer.GetBatch(), err
}

// Batch returns how a batch stands, or NotFound if no job was posted with it. With a wait, of
// at most 60 s, it answers when the batch is done, or as it stands when the wait is over.
func (b *Board) Batch(ctx context.Context, name string, wait time.Duration) (*Batch, error) {
	answer, err := call(ctx, b.client, "get batch", wait, b.client.rpc.GetBatch,
		&boarddv1.GetBatchRequest{Board: b.name, Name: name, Wait: duration(wait)})
	return answer.GetBatch(), err
}

// Batches goes through the board's batches in the order of their names, a page at a time: those
// that were put or closed, and those of which a job is open. With done they are only those that
// are done, or that are not. It ends with the first error, which comes without a batch.
func (b *Board) Batches(ctx context.Context, done *bool) iter.Seq2[*Batch, error] {
	return pages(func(token string) ([]*Batch, string, error) {
		answer, err := call(ctx, b.client, "list batches", 0, b.client.rpc.ListBatches,
			&boarddv1.ListBatchesRequest{Board: b.name, PageSize: pageSize, PageToken: token, Done: done})
		return answer.GetBatches(), answer.GetNextPageToken(), err
	})
}

// CloseBatch lets no more jobs into a batch.
func (b *Board) CloseBatch(ctx context.Context, name string) (*Batch, error) {
	answer, err := call(ctx, b.client, "close batch", 0, b.client.rpc.CloseBatch, &boarddv1.CloseBatchRequest{Board: b.name, Name: name})
	return answer.GetBatch(), err
}
