package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/plugin"
)

// asDriver makes this test's program the driver itself.
const asDriver = "BOARDD_TEST_AS_REDIS_DRIVER"

func TestMain(m *testing.M) {
	if os.Getenv(asDriver) == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start starts the driver as a process, on a server.
func start(t drivertest.T, server *testserver.Redis) driver.Driver {
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("%v", err)
	}
	settings, err := json.Marshal(map[string]string{"address": server.Addr})
	if err != nil {
		t.Fatalf("%v", err)
	}
	p, err := plugin.Start(t.Context(), plugin.Command{Path: self, Env: []string{asDriver + "=1"}})
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

func TestConformanceProcess(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	drivertest.Run(t, drivertest.Harness{
		Open:  func(t drivertest.T) driver.Driver { return start(t, server) },
		Store: func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return start(t, server) } },
		Forgetful: func(name string) (driver.BoardSpec, int) {
			return driver.BoardSpec{Name: name, Settings: []byte(`{"events":16}`)}, 16
		},
	})
}

