package plugin

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// migrateTimeout is for a store whose tables are large.
const migrateTimeout = time.Hour

// Migrate has the program's driver make or upgrade what its store needs.
func (s *server) Migrate(ctx context.Context, req *pb.MigrateRequest) (*pb.MigrateResponse, error) {
	if s.program.Migrate == nil {
		return nil, job.Errorf(job.Unsupported, "the driver has nothing to migrate: its stores are opened as they are")
	}
	if problems := s.program.Info.Config.Check(req.Settings); len(problems) > 0 {
		return nil, job.Errorf(job.Invalid, "%s", problems[0].Error())
	}
	m, err := s.migrate(ctx, driver.Config{Settings: req.Settings, DataDir: req.DataDir, Logger: s.logger}, req.Dry)
	if err != nil {
		return nil, err
	}
	return &pb.MigrateResponse{From: int32(m.From), To: int32(m.To), Script: m.Script}, nil //nolint:gosec // numbers of files
}

// migrate turns a panic into an error.
func (s *server) migrate(ctx context.Context, c driver.Config, dry bool) (m driver.Migration, err error) {
	defer s.guard("Migrate", &err)
	return s.program.Migrate(ctx, c, dry)
}

// Migrate makes or upgrades what the store needs, see driver.Program. It comes in place
// of Open. A driver that has nothing to migrate is Unsupported.
func (p *Process) Migrate(ctx context.Context, c driver.Config, dry bool) (driver.Migration, error) {
	return migrate(ctx, p.cold, c, dry)
}

func migrate(ctx context.Context, conn grpc.ClientConnInterface, c driver.Config, dry bool) (driver.Migration, error) {
	m, err := unary(ctx, call{op: "migrate"}, migrateTimeout, func(ctx context.Context, options ...grpc.CallOption) (*pb.MigrateResponse, error) {
		return pb.NewDriverClient(conn).Migrate(ctx, &pb.MigrateRequest{Settings: c.Settings, DataDir: c.DataDir, Dry: dry}, options...)
	})
	if err != nil {
		return driver.Migration{}, err
	}
	return driver.Migration{From: int(m.From), To: int(m.To), Script: m.Script}, nil
}
