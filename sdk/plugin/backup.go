package plugin

import (
	"context"
	"iter"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// Backup answers with a copy of the program's store, if its driver makes any.
func (s *server) Backup(_ *pb.BackupRequest, stream pb.Driver_BackupServer) error {
	return streamed(stream.Context(), s, func(ctx context.Context, d driver.Driver) iter.Seq2[driver.BackupPart, error] {
		backuper, ok := d.(driver.Backuper)
		if !ok {
			return refused[driver.BackupPart](job.Errorf(job.Unsupported, "the driver makes no backups"))
		}
		return backuper.Backup(ctx)
	}, func(p driver.BackupPart) error {
		return stream.Send(&pb.BackupPart{Name: p.Name, Size: p.Size, Data: p.Data})
	})
}

// Backup copies the other side's store; a driver that makes no backups is Unsupported.
func (r *remote) Backup(ctx context.Context) iter.Seq2[driver.BackupPart, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[pb.BackupPart], error) {
		return r.calls.Backup(ctx, &pb.BackupRequest{})
	}
	return func(yield func(driver.BackupPart, error) bool) {
		for m, err := range received[pb.BackupPart](ctx, call{op: "backup"}, 0, open) {
			if err != nil {
				yield(driver.BackupPart{}, err)
				return
			}
			if !yield(driver.BackupPart{Name: m.Name, Size: m.Size, Data: m.Data}, nil) {
				return
			}
		}
	}
}
