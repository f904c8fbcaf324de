package workload

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// Pry has a client of another tenant, on a board of its own, ask for this load's jobs
// there, by their uuids and with their tokens, until ctx ends.
func (l *Load) Pry(ctx context.Context, c *client.Client, board string) {
	random := rand.New(rand.NewPCG(l.Seed, 0x57a9)) //nolint:gosec // a run that can be made again
	b := c.Board(board)
	for sleep.For(ctx, time.Duration(random.Int64N(2*int64(l.Pause)))) == nil {
		for _, k := range l.some(random, 1) {
			id := k.posting.GetUuid()
			held := l.anyClaim(random)
			ask := []struct {
				what string
				do   func() error
			}{
				{"get", func() error { _, err := b.Get(ctx, client.GetOptions{}, id); return err }},
				{"claim", func() error {
					got, err := b.Claim(ctx, client.ClaimOptions{Owner: "stranger", UUIDs: []string{id}, RequestID: client.NewUUID()})
					if err == nil && len(got) == 0 {
						return job.NotFound
					}
					return err
				}},
				{"restore", func() error { return b.Restore(ctx, id) }},
				{"release", func() error { return b.Release(ctx, client.ReleaseOptions{Reason: "by a stranger"}, id) }},
				{"consume", func() error { return b.Consume(ctx, held) }},
			}
			if held == nil {
				ask = ask[:len(ask)-1]
			}
			one := ask[random.IntN(len(ask))]
			if one.what == "consume" {
				id = held.GetUuid()
			}
			from := l.Recorder.Now()
			op := history.Op{Client: "stranger", Call: history.Foreign, Board: board, Job: id}
			answer(&op, client.Each(one.do(), 1)[0])
			op.Text = one.what + " " + op.Text
			l.Recorder.Add(from, op)
		}
	}
}
