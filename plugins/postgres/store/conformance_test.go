package store

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
)

// opened opens a driver on a server.
func opened(t drivertest.T, p *testserver.Postgres) (driver.Driver, error) {
	settings, err := json.Marshal(map[string]any{"url": p.URL("postgres")})
	if err != nil {
		return nil, err
	}
	return open(t.Context(), driver.Config{Settings: settings, Logger: slog.New(slog.DiscardHandler)})
}

func must(t drivertest.T, d driver.Driver, err error) driver.Driver {
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

// leave leaves postings for a board, in one transaction.
func leave(p *testserver.Postgres, board string, ids []job.ID) {
	var text strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&text, `INSERT INTO boardd.inbox SELECT nextval('boardd.inbox_numbers'), pg_current_xact_id(), board, '%s', '{"name": "left"}', 16, now(), 'somebody'
			FROM boardd.boards WHERE name = '%s';`, id, board)
	}
	p.SQL("postgres", text.String())
}

func TestConformance(t *testing.T) {
	t.Parallel()
	p := testserver.StartPostgres(t, testserver.PostgresOptions{})
	drivertest.Run(t, drivertest.Harness{
		Open: func(t drivertest.T) driver.Driver { d, err := opened(t, p); return must(t, d, err) },
		Store: func(t drivertest.T) func() driver.Driver {
			return func() driver.Driver { d, err := opened(t, p); return must(t, d, err) }
		},
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return opened(t, p) }
		},
		Leave: func(t drivertest.T, board string, ids []job.ID) { leave(p, board, ids) },
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
	})
}
