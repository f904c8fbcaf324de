package plugin

import (
	"context"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// health answers with how a driver's store is and, where that is asked for, how much it holds.
func health(ctx context.Context, d driver.Driver, usage bool) (*pb.HealthResponse, error) {
	measurer, ok := d.(driver.Measurer)
	if !usage || !ok {
		return &pb.HealthResponse{}, d.Health(ctx)
	}
	u, err := measurer.Measure(ctx)
	answer := &pb.HealthResponse{UsedBytes: known(u.Used), LimitBytes: known(u.Limit)}
	if job.KindOf(err) == job.QuotaExceeded {
		full := err.Error()
		answer.Full, err = &full, nil
	}
	return answer, err
}

// known is a figure that is there unless it is 0.
func known(n int64) *int64 {
	if n == 0 {
		return nil
	}
	return &n
}

// Health asks for no more than an answer.
func (r *remote) Health(ctx context.Context) error {
	_, err := r.health(ctx, &pb.HealthRequest{})
	return err
}

// Measure asks the other side's driver how its store is and how much that holds; one that says
// nothing of it is asked for its health.
func (r *remote) Measure(ctx context.Context) (driver.Usage, error) {
	answer, err := r.health(ctx, &pb.HealthRequest{Usage: true})
	if err != nil {
		return driver.Usage{}, err
	}
	u := driver.Usage{Used: max(0, answer.GetUsedBytes()), Limit: max(0, answer.GetLimitBytes())} // below 0 is nothing that can be known
	if answer.Full != nil {
		return u, &job.Error{Op: "health", Kind: job.QuotaExceeded, Message: tame(answer.GetFull(), maxErrorText)}
	}
	return u, nil
}

func (r *remote) health(ctx context.Context, req *pb.HealthRequest) (*pb.HealthResponse, error) {
	return unary(ctx, call{op: "health"}, healthTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.HealthResponse, error) {
		return r.calls.Health(ctx, req, options...)
	})
}
