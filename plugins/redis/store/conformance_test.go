package store_test

import (
	"encoding/json"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
)

// settingsFor names a server in a backend's settings.
func settingsFor(t drivertest.T, address string) []byte {
	raw, err := json.Marshal(map[string]string{"address": address})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return raw
}

func openAt(t drivertest.T, address string) driver.Driver {
	d, err := store.Open(t.Context(), driver.Config{Settings: settingsFor(t, address)})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return d
}

// forgetful is a board that remembers 16 changes.
func forgetful(name string) (driver.BoardSpec, int) {
	return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	drivertest.Run(t, drivertest.Harness{
		Open: func(t drivertest.T) driver.Driver { return openAt(t, server.Addr) },
		Store: func(t drivertest.T) func() driver.Driver {
			return func() driver.Driver { return openAt(t, server.Addr) }
		},
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return openAt(t, server.Addr), nil }
		},
		Forgetful: forgetful,
	})
}
