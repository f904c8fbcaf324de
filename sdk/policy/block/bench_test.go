package block_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
)

// idle is a machine that answers nothing.
type idle struct{ room []byte }

func (m *idle) Borrow(context.Context) (block.Seat, error) { return m, nil }
func (m *idle) Close() error                               { return nil }
func (m *idle) Room() []byte                               { return m.room }
func (m *idle) Call(context.Context, abi.Call, int) error  { return nil }
func (m *idle) Return(bool)                                {}

// BenchmarkWrite is the host's share of a call: 1,024 jobs with five labels, of
// which the policy sees two.
func BenchmarkWrite(b *testing.B) {
	r, err := block.New(policy.Manifest{Ordering: true, Labels: []string{"gpu", "tier"}}, nil, &idle{room: make([]byte, abi.MaxBlock)})
	if err != nil {
		b.Fatal(err)
	}
	batch := &policy.Batch{}
	for i := range policy.MaxBatch {
		batch.Jobs = append(batch.Jobs, policy.Job{
			Name: fmt.Sprintf("render-scene-%013d", i), Sequence: uint64(i), CreatedAt: time.Unix(1_800_000_000, int64(i)),
			Labels: []job.Label{{Key: "arch", Value: "amd64"}, {Key: "env", Value: "prod"}, {Key: "gpu", Value: "a100"}, {Key: "team", Value: "t"}, {Key: "tier", Value: "gold"}},
		})
	}
	scores := make([]int64, len(batch.Jobs))
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Score(b.Context(), batch, scores); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(batch.Jobs)), "ns/job")
}
