package store

import (
	"encoding/json"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestTrackingPlaces has keys tracked on every sort of deployment, after a failover too; in
// a cluster they are not.
func TestTrackingPlaces(t *testing.T) {
	t.Parallel()
	certificates := testserver.NewCertificates(t)
	type place struct {
		settings map[string]any
		fail     func() // the master; nil: there is only one
	}
	for name, c := range map[string]struct {
		start func(t *testing.T) place
		want  bool
	}{
		"a unix socket": {func(t *testing.T) place {
			t.Helper()
			return place{map[string]any{"address": testserver.StartRedis(t, testserver.RedisOptions{Socket: true}).Socket}, nil}
		}, true},
		"TLS and another database": {func(t *testing.T) place {
			t.Helper()
			server := testserver.StartRedis(t, testserver.RedisOptions{TLS: certificates})
			secure := map[string]any{"ca_file": certificates.CA, "cert_file": certificates.ClientCert, "key_file": certificates.ClientKey}
			return place{map[string]any{"address": server.Addr, "db": 3, "tls": secure}, nil}
		}, true},
		"Sentinels": {func(t *testing.T) place {
			t.Helper()
			sentinels := testserver.StartSentinels(t, testserver.RedisOptions{}, "outer")
			return place{
				map[string]any{"sentinels": sentinels.Addrs, "master_name": sentinels.Name, "sentinel_password": "outer"},
				sentinels.Master().Kill,
			}
		}, true},
		"a cluster": {func(t *testing.T) place {
			t.Helper()
			return place{map[string]any{"cluster": testserver.StartCluster(t, testserver.RedisOptions{}).Addrs}, nil}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			where := c.start(t)
			settings, err := json.Marshal(where.settings)
			if err != nil {
				t.Fatal(err)
			}
			d, err := Open(t.Context(), driver.Config{Settings: settings})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			s, k, n := d.(*Store), keysOf("{b}:"), newNotices()
			s.track(t.Context(), &k, n)
			t.Cleanup(func() { n.stop() })
			if n.on() != c.want || n.without.Load() == c.want {
				t.Fatalf("keys are tracked: %v", n.on())
			}
			named := func(id job.ID) {
				t.Helper()
				testserver.Eventually(t, "a job is named", func() bool {
					_ = s.client.Set(t.Context(), k.owner(id.String()), "py", 0).Err() // fails until there is a master
					n.mu.Lock()
					defer n.mu.Unlock()
					_, ok := n.ids[id.String()]
					return ok
				})
			}
			if c.want {
				named(numbered(1))
			}
			if where.fail != nil {
				where.fail()
				named(numbered(2))
			}
		})
	}
}
