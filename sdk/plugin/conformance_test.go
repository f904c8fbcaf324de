package plugin

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// The reference driver does everything right, so what these find is the wire's.

func TestConformancePipe(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{Forgetful: forgetful, Open: func(t drivertest.T) driver.Driver {
		d, err := Pipe(t.Context(), memdriver.Program(), driver.Config{})
		if err != nil {
			t.Fatalf("%v", err)
		}
		return d
	}})
}

func TestConformanceProcess(t *testing.T) {
	t.Parallel()
	command := command(t, "memory")
	drivertest.Run(t, drivertest.Harness{Forgetful: forgetful, Open: func(t drivertest.T) driver.Driver {
		p, err := Start(t.Context(), command)
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(p.Kill)
		d, err := p.Open(t.Context(), driver.Config{})
		if err != nil {
			t.Fatalf("%v", err)
		}
		return d
	}})
}

// TestConformanceUnary does without the stream of batches, as a simple driver in
// another language does.
func TestConformanceUnary(t *testing.T) {
	t.Parallel()
	only := []string{"batch", "post", "claim", "retry", "remove", "race", "random"} // what goes through Apply, without leases that run out
	drivertest.Run(t, drivertest.Harness{Only: only, Open: func(t drivertest.T) driver.Driver {
		d, err := pipeTo(t.Context(), func(g *grpc.Server, s *server) { pb.RegisterDriverServer(g, simple{s}) }, memdriver.Program(), driver.Config{})
		if err != nil {
			t.Fatalf("%v", err)
		}
		return d
	}})
}

// simple is a driver that has only ExecBatch.
type simple struct{ *server }

func (s simple) Info(ctx context.Context, req *pb.InfoRequest) (*pb.InfoResponse, error) {
	info, err := s.server.Info(ctx, req)
	info.ExecStream = false
	return info, err
}

func (s simple) Exec(stream pb.Driver_ExecServer) error {
	return s.UnimplementedDriverServer.Exec(stream)
}

// forgetful is a board that remembers 16 changes.
func forgetful(name string) (driver.BoardSpec, int) {
	return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
}
