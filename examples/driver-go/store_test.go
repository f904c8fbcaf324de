package main

import (
	"log/slog"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
)

func TestConformance(t *testing.T) {
	open := func(t drivertest.T, dir string) driver.Driver {
		d, err := Open(t.Context(), driver.Config{DataDir: dir, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		return d
	}
	drivertest.Run(t, drivertest.Harness{
		Open: func(t drivertest.T) driver.Driver { return open(t, t.TempDir()) },
		Store: func(t drivertest.T) func() driver.Driver {
			dir := t.TempDir()
			return func() driver.Driver { return open(t, dir) }
		},
	})
}
