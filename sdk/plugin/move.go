package plugin

import (
	"context"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
	"github.com/boardd/boardd/sdk/plugin/internal/wire"
)

// MoveBoard takes a step of a move, if the driver's boards move.
func (s *server) MoveBoard(ctx context.Context, req *pb.MoveBoardRequest) (*pb.MoveBoardResponse, error) {
	d, done, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer done()
	mover, ok := d.(driver.Mover)
	if !ok {
		return nil, job.Errorf(job.Unsupported, "the driver's boards do not move")
	}
	m, err := wire.MoveFrom(req)
	if err != nil {
		return nil, invalid(err)
	}
	return &pb.MoveBoardResponse{}, mover.MoveBoard(ctx, req.Board, m)
}

// MoveBoard takes a step of a move at the other side; of a driver whose boards do not move it
// is Unsupported.
func (r *remote) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	_, err := unary(ctx, call{op: "move board", changes: true}, boardTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.MoveBoardResponse, error) {
		return r.calls.MoveBoard(ctx, wire.MoveTo(board, m), options...)
	})
	return err
}
