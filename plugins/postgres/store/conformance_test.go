package store

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
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
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
	})
}
