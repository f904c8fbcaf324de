package plugin

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// namesSent is how many boards a message names at most: it stays below 1 MiB.
const namesSent = 4096

// WatchInboxes answers with the boards that the program's driver names, if it names any.
func (s *server) WatchInboxes(_ *pb.WatchInboxesRequest, stream pb.Driver_WatchInboxesServer) error {
	return streamed(stream.Context(), s, func(ctx context.Context, d driver.Driver) iter.Seq2[[]string, error] {
		waker, ok := d.(driver.Waker)
		if !ok {
			return refused[[]string](job.Errorf(job.Unsupported, "the driver does not tell for which boards postings are left"))
		}
		return waker.WatchInboxes(ctx)
	}, func(boards []string) error {
		for part := range slices.Chunk(boards, namesSent) {
			if err := stream.Send(&pb.Inboxes{Boards: part}); err != nil {
				return err
			}
		}
		return nil
	})
}

// WatchInboxes asks the other side's driver; one that does not tell is Unsupported.
func (r *remote) WatchInboxes(ctx context.Context) iter.Seq2[[]string, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.Inboxes], error) {
		return r.calls.WatchInboxes(ctx, &pb.WatchInboxesRequest{})
	}
	return func(yield func([]string, error) bool) {
		for m, err := range received[pb.Inboxes](ctx, call{op: "watch inboxes"}, 0, open) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(m.Boards, nil) {
				return
			}
		}
	}
}
