package plugin

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// Examine answers with what the program's driver finds, if it looks at all.
func (s *server) Examine(req *pb.ExamineRequest, stream pb.Driver_ExamineServer) error {
	return streamed(stream.Context(), s, func(ctx context.Context, d driver.Driver) iter.Seq2[driver.Finding, error] {
		examiner, ok := d.(driver.Examiner)
		if !ok {
			return refused[driver.Finding](job.Errorf(job.Unsupported, "the driver does not examine boards"))
		}
		return examiner.Examine(ctx, req.Board)
	}, func(f driver.Finding) error {
		return stream.Send(&pb.Findings{List: []*pb.Finding{wire.FindingTo(f)}})
	})
}

// Examine asks the other side's driver; one that does not look at its boards is
// Unsupported.
func (r *remote) Examine(ctx context.Context, board string) iter.Seq2[driver.Finding, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.Findings], error) {
		return r.calls.Examine(ctx, &pb.ExamineRequest{Board: board})
	}
	return func(yield func(driver.Finding, error) bool) {
		for m, err := range received[pb.Findings](ctx, call{op: "examine"}, 0, open) {
			if err != nil {
				yield(driver.Finding{}, err)
				return
			}
			for _, one := range m.List {
				f, err := wire.FindingFrom(one)
				if err != nil {
					yield(driver.Finding{}, r.wrong("examine", job.Unavailable, err))
					return
				}
				for _, text := range []*string{&f.Code, &f.Subject, &f.Problem, &f.Mend} {
					*text = tame(*text, maxErrorText)
				}
				if !yield(f, nil) {
					return
				}
			}
		}
	}
}
