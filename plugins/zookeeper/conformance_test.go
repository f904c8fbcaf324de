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
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	open := opener(t, z)
	drivertest.Run(t, drivertest.Harness{
		Open:  open,
		Store: func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return open(t) } },
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return open(t), nil }
		},
	})
}

// TestConformanceProcessEnsemble runs what changes jobs against the program on three servers, of
// which one is killed and started again all the time. store.TestConformanceEnsemble runs the rest.
func TestConformanceProcessEnsemble(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3, Fast: true})
	z.Churn()
	drivertest.Run(t, drivertest.Harness{Open: opener(t, z), Programs: 4, Only: []string{"post", "claim", "remove", "random"}})
}

// opener starts a process of the program for each driver.
func opener(t *testing.T, z *testserver.ZooKeeperEnsemble) func(drivertest.T) driver.Driver {
	t.Helper()
	program := testserver.Build(t, "./plugins/zookeeper")
	settings, err := json.Marshal(map[string]any{"servers": z.Servers()})
	if err != nil {
		t.Fatal(err)
	}
	return func(t drivertest.T) driver.Driver {
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
}
