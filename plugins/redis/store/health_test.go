package store

import (
	"encoding/json"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestMeasure: a Redis without a limit tells none, one with a limit tells it, also when it is
// full; and of a cluster the master that is fullest tells.
func TestMeasure(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{Config: []string{"maxmemory-policy noeviction"}})
	s := openStore(t, server.Addr)
	t.Cleanup(func() { _ = s.Close() })
	measures := func(limit int64, kind job.Kind) {
		t.Helper()
		u, err := s.Measure(t.Context())
		if u.Used < 500<<10 || u.Limit != limit || job.KindOf(err) != kind {
			t.Errorf("the store holds %+v, %v; want some hundred KiB of %d, %v", u, err, limit, kind)
		}
	}
	measures(0, job.NoKind)
	server.Command("CONFIG", "SET", "maxmemory", "64mb")
	measures(64<<20, job.NoKind)
	server.Command("CONFIG", "SET", "maxmemory", "500kb")
	measures(500<<10, job.QuotaExceeded)

	cluster := testserver.StartCluster(t, testserver.RedisOptions{Config: []string{"maxmemory 64mb", "maxmemory-policy noeviction"}})
	settings, err := json.Marshal(map[string]any{"cluster": cluster.Addrs})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), driver.Config{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	cluster.Servers[1].Command("CONFIG", "SET", "maxmemory", "32mb")
	if u, err := d.(driver.Measurer).Measure(t.Context()); err != nil || u.Limit != 32<<20 {
		t.Errorf("the cluster holds %+v, %v; want what the master with half of the others' memory does", u, err)
	}
}
