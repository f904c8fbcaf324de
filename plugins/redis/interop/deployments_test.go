package interop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
)

// TestDeployments runs the whole suite over each way to reach a Redis.
func TestDeployments(t *testing.T) {
	t.Parallel()
	certificates := testserver.NewCertificates(t)
	for name, start := range map[string]func(t *testing.T) map[string]any{
		"a unix socket and few rights": func(t *testing.T) map[string]any {
			t.Helper()
			server := testserver.StartRedis(t, testserver.RedisOptions{Socket: true, Users: []string{rights(t, "worker", "secret", "b{*")}})
			return map[string]any{"address": server.Socket, "username": "worker", "password": "secret"}
		},
		"TLS": func(t *testing.T) map[string]any {
			t.Helper()
			server := testserver.StartRedis(t, testserver.RedisOptions{TLS: certificates})
			return map[string]any{"address": server.Addr, "db": 3, "tls": map[string]any{"ca_file": certificates.CA, "cert_file": certificates.ClientCert, "key_file": certificates.ClientKey}}
		},
		"Sentinels": func(t *testing.T) map[string]any {
			t.Helper()
			sentinels := testserver.StartSentinels(t, testserver.RedisOptions{}, "outer")
			return map[string]any{"sentinels": sentinels.Addrs, "master_name": sentinels.Name, "sentinel_password": "outer"}
		},
		"Cluster": func(t *testing.T) map[string]any {
			t.Helper()
			return map[string]any{"cluster": testserver.StartCluster(t, testserver.RedisOptions{}).Addrs}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, err := json.Marshal(start(t))
			if err != nil {
				t.Fatal(err)
			}
			conforms(t, settings)
		})
	}
}

func conforms(t *testing.T, settings []byte) {
	t.Helper()
	open := func(t drivertest.T) driver.Driver {
		d, err := store.Open(t.Context(), driver.Config{Settings: settings})
		if err != nil {
			t.Fatalf("Open: %v", err)
		}
		return tagged{d}
	}
	drivertest.Run(t, drivertest.Harness{
		Open:  open,
		Store: func(t drivertest.T) func() driver.Driver { return func() driver.Driver { return open(t) } },
		Hosts: func(t drivertest.T) func() (driver.Driver, error) {
			return func() (driver.Driver, error) { return open(t), nil }
		},
	})
}

// tagged gives every board a namespace with a hash tag, as a Cluster needs it.
type tagged struct{ driver.Driver }

// OpenBoard opens a board under its tag.
func (d tagged) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if len(spec.Settings) == 0 {
		spec.Settings = fmt.Appendf(nil, `{"namespace":"b{%x}"}`, spec.Name)
	}
	return d.Driver.OpenBoard(ctx, spec)
}
