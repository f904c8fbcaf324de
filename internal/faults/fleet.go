package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/internal/testserver"
)

// gather makes it a schedule of servers that serve their boards together. Which server answers
// is not known there, since calls are passed on, so no policy changes. The faults last for
// long enough that servers are taken for gone, and come back.
func (s *Schedule) gather(random *rand.Rand) {
	s.Policies, s.Forgets = false, false
	s.Servers = 2 + int(s.Seed%3)
	s.Length += 8 * time.Second
	kinds := [][]string{
		nil,
		{"none"},
		{"server"},
		{"peer"},
		{"peer cut", "peer deaf", "peer mute"},
		{"server", "peer"},
		{"server killed"},
		{"server stopped"},
		{"store"},
		{"peer", "store", "client"},
	}
	s.Kinds = kinds[random.IntN(len(kinds))]
	if s.PutBack = s.Seed%8 == 7; s.PutBack { // the servers have lost each other meanwhile, and so have two owners of each board
		s.Kinds, s.Tenants = []string{"none"}, false
	}
}

// fleet starts servers that serve their boards together. Each is reached by the others through
// a proxy of its own, so that they can lose each other while clients and the store reach all.
func (d *deployment) fleet(t testing.TB, programs string, s Schedule, told *workload.Receiver) {
	t.Helper()
	backend := d.redis(t)
	for i := range s.Servers {
		path := filepath.Join(t.TempDir(), "boardd.hcl")
		folder := s.folder(programs, i)
		server := testserver.New(t, filepath.Join(folder, "boardd"), "", "--config", path)
		addr := strings.TrimPrefix(server.Addr, "http://")
		door, way := testserver.NewProxy(t, addr), testserver.NewProxy(t, addr)
		shared := fmt.Sprintf("advertise = %q\ncatalog { backend = \"main\" }", "http://"+way.Addr())
		config := configure(s, folder, shared, backend, anywhere, told)
		if err := os.WriteFile(path, config, 0o600); err != nil {
			t.Fatal(err)
		}
		server.Launch()
		d.Servers, d.Doors, d.Ways = append(d.Servers, server), append(d.Doors, door), append(d.Ways, way)
		d.addrs = append(d.addrs, "http://"+door.Addr())
		testserver.Eventually(t, fmt.Sprintf("%s is ready", serverName(i)), server.Ready)
	}
}
