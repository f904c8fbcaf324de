package plugin

import (
	"context"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

// TestMigrate has what a program says of its store's tables arrive, and refuses where
// there are none or the settings do not fit.
func TestMigrate(t *testing.T) {
	t.Parallel()
	program := storeProgram()
	s := newServer(program, orDiscard(nil))
	if _, err := s.Migrate(t.Context(), &pb.MigrateRequest{}); job.KindOf(err) != job.Unsupported {
		t.Errorf("a program without tables: %v, want UNSUPPORTED", err)
	}
	s.program.Info.Config = driver.Schema{Fields: []driver.Field{{Name: "url", Type: driver.String}}}
	s.program.Migrate = func(_ context.Context, c driver.Config, dry bool) (driver.Migration, error) {
		if string(c.Settings) != `{"url":"u"}` || !dry {
			panic("it was asked for something else")
		}
		return driver.Migration{From: 2, To: 4, Script: "CREATE"}, nil
	}
	m, err := s.Migrate(t.Context(), &pb.MigrateRequest{Settings: []byte(`{"url":"u"}`), Dry: true})
	if err != nil || m.From != 2 || m.To != 4 || m.Script != "CREATE" {
		t.Errorf("a dry run: %v, %v", m, err)
	}
	if _, err := s.Migrate(t.Context(), &pb.MigrateRequest{Settings: []byte(`{"color":1}`)}); job.KindOf(err) != job.Invalid {
		t.Errorf("settings that there are not: %v, want INVALID", err)
	}
	if _, err := s.Migrate(t.Context(), &pb.MigrateRequest{Settings: []byte(`{"url":"u"}`)}); job.KindOf(err) == job.NoKind || err == nil {
		t.Errorf("a program that panics: %v, want an error", err)
	}
}
