package main

import (
	"encoding/json"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/plugin"
)

// TestConformanceProcess runs the suite against the program itself.
func TestConformanceProcess(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./plugins/zookeeper")
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	settings, err := json.Marshal(map[string]any{"servers": z.Servers()})
	if err != nil {
		t.Fatal(err)
	}
	open := func(t drivertest.T) driver.Driver {
		p, err := plugin.Start(t.Context(), plugin.Command{Path: program})
		if err != nil {
			t.Fatalf("%v", err)
		}
		t.Cleanup(p.Kill)
		d, err := p.Open(t.Context(), driver.Config{Settings: settings})
		if err != nil {
			t.Fatalf("%v", err)
		}
		return d
	}
	drivertest.Run(t, drivertest.Harness{
		Open:  open,
		Store: func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return open(t) } },
	})
}
