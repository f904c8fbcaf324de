package store

import (
	"encoding/json"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

// TestMeasure: servers that answer mntr tell how large their data are, and those that do not
// are well all the same.
func TestMeasure(t *testing.T) {
	t.Parallel()
	opened := func(config ...string) *Store {
		z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true, Config: config})
		settings, err := json.Marshal(map[string]any{"servers": z.Servers()})
		if err != nil {
			t.Fatal(err)
		}
		d, err := Open(t.Context(), driver.Config{Settings: settings}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d.(*Store)
	}
	measure := func(s *Store) int64 {
		u, err := s.Measure(t.Context())
		if err != nil || u.Limit != 0 {
			t.Fatalf("the store holds %+v, %v; want no limit", u, err)
		}
		return u.Used
	}
	told := opened()
	testserver.Eventually(t, "the size of the data is known", func() bool { return measure(told) > 0 })
	silent := opened("4lw.commands.whitelist=srvr")
	measure(silent)
	if n, err := silent.dataSize(t.Context()); err == nil {
		t.Errorf("a server that may not answer mntr says that it holds %d bytes", n)
	}
}
