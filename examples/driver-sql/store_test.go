package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
)

// TestConformance gives the suite three sorts of stores: one for most checks, one that
// outlives its driver, and one that several drivers have open at once.
func TestConformance(t *testing.T) {
	at := func(t drivertest.T, dir string) (driver.Driver, error) {
		settings, err := json.Marshal(map[string]string{"path": filepath.Join(dir, "boards.sqlite")})
		if err != nil {
			return nil, err
		}
		return open(t.Context(), driver.Config{Settings: settings, Logger: slog.New(slog.DiscardHandler)})
	}
	must := func(t drivertest.T, d driver.Driver, err error) driver.Driver {
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		return d
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t drivertest.T) driver.Driver { d, err := at(t, t.TempDir()); return must(t, d, err) },
		Store: func(t drivertest.T) func() driver.Driver {
			dir := t.TempDir()
			return func() driver.Driver { d, err := at(t, dir); return must(t, d, err) }
		},
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			dir := t.TempDir()
			return func() (driver.Driver, error) { return at(t, dir) }
		},
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: fmt.Appendf(nil, `{"events":%d}`, 16)}, 16
		},
	})
}
