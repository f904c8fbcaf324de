package nemesis_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/nemesis"
	"github.com/boardd/boardd/internal/testserver"
)

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 1)) } //nolint:gosec // the same each time

// TestKindOfNoFault: a schedule that names what cannot break there would pass, and break nothing.
func TestKindOfNoFault(t *testing.T) {
	t.Parallel()
	door := testserver.NewProxy(t, "127.0.0.1:1")
	for _, c := range []struct {
		kinds []string
		wrong string // the kind that the error names
	}{
		{[]string{"store cut", "store deaf"}, ""},
		{[]string{nemesis.None}, ""},
		{nil, ""},
		{[]string{"peer"}, `"peer"`},
		{[]string{"store", "redis full"}, `"redis full"`},
	} {
		n := &nemesis.Nemesis{
			Deployment: &nemesis.Deployment{Links: []*testserver.Proxy{door}}, Recorder: history.NewRecorder("redis", 1), Random: random(), Kinds: c.kinds,
		}
		err := n.Run(t.Context(), time.Microsecond)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("the kinds %q: %v, want an error that names %q", c.kinds, err, c.wrong)
		}
	}
}

// TestMasterFaults: behind Sentinels the network between drivers and the master breaks, whichever
// server that is.
func TestMasterFaults(t *testing.T) {
	t.Parallel()
	s := testserver.StartSentinels(t, testserver.RedisOptions{}, "")
	d := &nemesis.Deployment{Sentinels: s}
	d.Asked, d.Masters = s.Between()
	all := nemesis.Faults(d, random())
	cut := slices.IndexFunc(all, func(f nemesis.Fault) bool { return f.Name == "store cut" })
	if cut < 0 {
		t.Fatal("nothing cuts the drivers off from the store")
	}
	passes := func(p *testserver.Proxy) bool {
		r := testserver.Redis{Addr: p.Addr()}
		return r.Tell("PING") == "+PONG"
	}
	for round := range 2 {
		var through []bool
		all[cut].Begin()
		for i, server := range s.Servers {
			through = append(through, passes(d.Masters[i]))
			if server != s.Master() == !through[i] {
				t.Errorf("server %d is the master: %v, and can be reached: %v", i, server == s.Master(), through[i])
			}
		}
		all[cut].End()
		if i := slices.Index(through, false); i < 0 || !passes(d.Masters[i]) {
			t.Error("what was cut is not mended")
		}
		if round == 1 {
			break
		}
		old := s.Master()
		testserver.Eventually(t, "another server is the master", func() bool {
			s.Failover()
			return s.Master() != nil && s.Master() != old
		})
		s.AwaitMaster()
	}
}
