package plugin

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// BenchmarkApply measures the way to a driver in a process of its own that does
// nothing, and back: one op per call (unary), and as Apply does it (gathered).
// Allocations are the host's.
func BenchmarkApply(b *testing.B) {
	self := command(b, "store")
	p, err := Start(b.Context(), self)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Kill()
	d, err := p.Open(b.Context(), driver.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, callers := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("unary-%d", callers), func(b *testing.B) {
			work(b, callers, func(ctx context.Context, op *driver.Op) { alone(ctx, b, p.hot, op) })
		})
		b.Run(fmt.Sprintf("gathered-%d", callers), func(b *testing.B) {
			work(b, callers, func(ctx context.Context, op *driver.Op) {
				if r := d.Apply(ctx, "b", []driver.Op{*op}); r[0].Kind != job.NoKind {
					b.Error(r[0].Kind)
				}
			})
		})
	}
}

// work runs each op of b.N by one of so many callers.
func work(b *testing.B, callers int, do func(context.Context, *driver.Op)) {
	b.Helper()
	b.ReportAllocs()
	ops := make(chan struct{}, 1024)
	done := make(chan struct{})
	for c := range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			op := driver.Op{
				Kind: driver.Extend, Job: id(c), Precondition: driver.HeldByToken, Lease: 30 * time.Second,
				Token: job.Token{Generation: 1, Epoch: uint64(c), Nonce: [16]byte{1}},
			}
			for range ops {
				do(b.Context(), &op)
			}
		}()
	}
	for range b.N {
		ops <- struct{}{}
	}
	close(ops)
	for range callers {
		<-done
	}
}

func alone(ctx context.Context, b *testing.B, conn grpc.ClientConnInterface, op *driver.Op) {
	b.Helper()
	m := &pb.Op{}
	wire.OpTo(m, 1, op)
	batch := &pb.Batch{Seq: 1, Boards: []*pb.BoardOps{{Board: "b", Ops: []*pb.Op{m}}}}
	if _, err := pb.NewDriverClient(conn).ExecBatch(ctx, batch); err != nil {
		b.Error(err)
	}
}
