package store_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
)

// rememberedChanges is how many changes a board of the conformance suite
// remembers: few enough that a check can run over the end.
const rememberedChanges = 3000

func open(t drivertest.T, servers []string, o store.Options) driver.Driver {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	settings, err := json.Marshal(map[string]any{"servers": servers})
	if err != nil {
		t.Fatalf("settings: %v", err)
	}
	d, err := store.Open(ctx, driver.Config{Settings: settings}, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return d
}

func TestConformance(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	opener := func(t drivertest.T) driver.Driver {
		return open(t, z.Servers(), store.Options{Events: rememberedChanges})
	}
	drivertest.Run(t, drivertest.Harness{
		Open:  opener,
		Store: func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return opener(t) } },
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return opener(t), nil }
		},
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name}, 2 * rememberedChanges
		},
	})
}

// TestConformanceEnsemble runs what goes through Apply on three servers, of which
// one is killed and started again all the time.
func TestConformanceEnsemble(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3, Fast: true})
	z.Churn()
	drivertest.Run(t, drivertest.Harness{
		Open:     func(t drivertest.T) driver.Driver { return open(t, z.Servers(), store.Options{}) },
		Programs: 4,
	})
}
