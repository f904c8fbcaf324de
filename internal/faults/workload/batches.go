package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Batches are clients that make one small batch after another, end its jobs in every way
// there is, and take what follows away for good, so that nothing of it would tell that it
// was posted. Nobody else knows of these jobs.
type Batches struct {
	recorder *history.Recorder
	board    *client.Board
	seed     uint64

	mu   sync.Mutex
	made []*history.Batch
}

const (
	batchClients = 2
	mostOfBatch  = 4

	batchJob, batchThen = "part", "sum"
)

// NewBatches makes nothing yet.
func NewBatches(recorder *history.Recorder, board *client.Board, seed uint64) *Batches {
	return &Batches{recorder: recorder, board: board, seed: seed}
}

// Run makes batches until ctx ends, and leaves none halfway.
func (b *Batches) Run(ctx context.Context) {
	var group sync.WaitGroup
	for n := range batchClients {
		group.Go(func() {
			random := rand.New(rand.NewPCG(b.seed, uint64(1000+n))) //nolint:gosec // a run that can be made again
			for i := 0; ctx.Err() == nil; i++ {
				b.one(context.WithoutCancel(ctx), random, fmt.Sprint("batch-", n, "-", i))
			}
		})
	}
	group.Wait()
}

// one makes a batch and ends all of its jobs.
func (b *Batches) one(ctx context.Context, random *rand.Rand, name string) {
	made := &history.Batch{Name: name, Then: client.NewUUID(), BatchCounts: history.BatchCounts{Posted: 1 + random.IntN(mostOfBatch)}}
	expected := int64(0)
	if random.IntN(2) == 0 {
		expected = int64(made.Posted)
	}
	if !insist(ctx, func() error {
		_, err := b.board.PutBatch(ctx, name, &client.NewJob{Uuid: made.Then, Name: batchThen}, expected)
		return err
	}) {
		return
	}
	jobs := make([]string, made.Posted)
	for i := range jobs {
		jobs[i] = client.NewUUID()
		if !insist(ctx, func() error {
			_, err := b.board.Post(ctx, &client.NewJob{Uuid: jobs[i], Name: batchJob, Batch: name})
			return err
		}) {
			return
		}
	}
	if expected == 0 && !insist(ctx, func() error { _, err := b.board.CloseBatch(ctx, name); return err }) {
		return
	}
	for i, id := range jobs {
		if i == len(jobs)-1 {
			shown, err := b.board.Batch(ctx, name, 0)
			made.Early = err == nil && (shown.GetDone() || shown.GetThenUuid() != "")
		}
		if !b.end(ctx, random, made, id) {
			return
		}
	}
	b.mu.Lock()
	b.made = append(b.made, made)
	b.mu.Unlock()
	if random.IntN(3) > 0 {
		b.away(ctx, made)
	}
}

// end takes a job off the board in one of the ways there are, and reports whether it surely
// is.
func (b *Batches) end(ctx context.Context, random *rand.Rand, made *history.Batch, id string) bool {
	const trashed, gone = boarddv1.State_TRASHED, boarddv1.State_COMPLETE
	trash := func() error { return b.board.TrashUnclaimed(ctx, "by hand", id) }
	consume := func(c *client.Claim) error { return b.board.Consume(ctx, c) }
	switch random.IntN(4) {
	case 0:
		made.Trashed++
		return surely(ctx, b.board, id, trashed, trash)
	case 1:
		made.Canceled++
		return surely(ctx, b.board, id, gone, func() error { _, err := b.board.Cancel(ctx, true, id); return err })
	case 2:
		made.Purged++
		return surely(ctx, b.board, id, trashed, trash) && surely(ctx, b.board, id, gone, func() error { return b.board.Purge(ctx, id) })
	default:
		made.Consumed++
		return surely(ctx, b.board, id, gone, func() error { return withClaim(ctx, b.board, id, consume) })
	}
}

// away takes what follows a batch off the board and out of the trash as soon as it is there.
func (b *Batches) away(ctx context.Context, made *history.Batch) {
	trash := func() error { return b.board.TrashUnclaimed(ctx, "by hand", made.Then) }
	if !surely(ctx, b.board, made.Then, boarddv1.State_TRASHED, trash) {
		return
	}
	gone := insist(ctx, func() error {
		if err := b.board.Purge(ctx, made.Then); job.KindOf(err) != job.NotFound { // else an earlier try did it
			return err
		}
		return nil
	})
	b.mu.Lock()
	made.Away = gone
	b.mu.Unlock()
}

// Rest waits, when nothing is broken any more, until each batch is done, and writes down how
// it stands and whether what follows it is on the board.
func (b *Batches) Rest(ctx context.Context, board *client.Board, patience time.Duration) error {
	r := &resting{recorder: b.recorder, patience: patience}
	if err := r.until(ctx, func() (bool, error) {
		all := true
		for _, made := range b.made {
			if made.Done {
				continue
			}
			shown, err := board.Batch(ctx, made.Name, 0)
			if err != nil {
				return false, err
			}
			made.Shown, made.Done = shownOf(shown), shown.GetDone()
			all = all && made.Done
		}
		return all, nil
	}); err != nil {
		return err
	}
	if err := sleep.For(ctx, stale); err != nil {
		return err
	}
	on := map[string]bool{}
	if err := r.until(ctx, func() (bool, error) {
		for j, err := range board.List(ctx, client.ListOptions{States: []boarddv1.State_Enum{boarddv1.State_UNCLAIMED}, Filter: "name = " + batchThen}) {
			if err != nil {
				return false, err
			}
			on[j.GetUuid()] = true
		}
		return true, nil
	}); err != nil {
		return err
	}
	b.recorder.Change(func(h *history.History) {
		for _, made := range b.made {
			made.Listed = on[made.Then]
			h.Batches = append(h.Batches, *made)
		}
	})
	return nil
}

func shownOf(b *client.Batch) history.BatchCounts {
	return history.BatchCounts{
		Posted: int(b.GetPosted()), Consumed: int(b.GetConsumed()), Canceled: int(b.GetCanceled()), Trashed: int(b.GetTrashed()), Purged: int(b.GetPurged()),
	}
}
