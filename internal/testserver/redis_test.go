package testserver_test

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

func TestRedisKeepsWhatItAcknowledged(t *testing.T) {
	t.Parallel()
	r := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true, Socket: true, Config: []string{"notify-keyspace-events KA"}})
	if got := r.Command("SET", "key", "value"); got != "+OK" {
		t.Fatal(got)
	}
	r.Kill()
	r.Restart()
	if got := r.Command("GET", "key"); got != "value" {
		t.Errorf("after a kill: %q", got)
	}
	if got := r.Command("CONFIG", "GET", "notify-keyspace-events"); !strings.HasPrefix(got, "*2\nnotify-keyspace-events\nAK") {
		t.Errorf("got %q", got)
	}
}

func TestRedisOfUsers(t *testing.T) {
	t.Parallel()
	r := testserver.StartRedis(t, testserver.RedisOptions{TLS: testserver.NewCertificates(t)})
	if r.Addr == "" {
		t.Error("no address")
	}
	r = testserver.StartRedis(t, testserver.RedisOptions{Users: []string{"worker on >secret ~ns:* +@all"}})
	if got := r.Command("GET", "key"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("anybody: %q", got)
	}
}

func TestSentinels(t *testing.T) {
	t.Parallel()
	s := testserver.StartSentinels(t, testserver.RedisOptions{}, "secret")
	first := s.Master()
	first.Kill()
	testserver.Eventually(t, "another server is the master", func() bool { return s.Master() != nil })
	first.Restart()
}

// TestBetweenSentinels: who asks through a proxy is led through one, also to the next master.
func TestBetweenSentinels(t *testing.T) {
	t.Parallel()
	s := testserver.StartSentinels(t, testserver.RedisOptions{}, "")
	asked, servers := s.Between()
	leads := func(to *testserver.Proxy) bool {
		for _, p := range asked {
			sentinel := testserver.Redis{Addr: p.Addr()}
			if others := sentinel.Tell("SENTINEL", "SENTINELS", s.Name); slices.ContainsFunc(s.Addrs, func(addr string) bool { return strings.Contains(others, portOf(addr)) }) {
				t.Fatalf("a Sentinel says that there is another one past the proxies: %q", others)
			}
			if sentinel.Tell("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.Name) != "*2\n127.0.0.1\n"+portOf(to.Addr()) {
				return false
			}
		}
		return true
	}
	if !leads(servers[0]) {
		t.Error("the Sentinels do not lead through the proxy before the master")
	}
	servers[0].Sever(true)
	if s.Master() != s.Servers[0] {
		t.Error("a proxy is between the servers, too")
	}
	s.Servers[0].Kill()
	s.AwaitMaster()
	testserver.Eventually(t, "the Sentinels lead through the proxy before the next master", func() bool {
		return leads(servers[slices.Index(s.Servers, s.Master())])
	})
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

func TestCluster(t *testing.T) {
	t.Parallel()
	c := testserver.StartCluster(t, testserver.RedisOptions{})
	moved := 0
	for _, key := range []string{"a", "b", "c", "d"} {
		if strings.HasPrefix(c.Servers[0].Command("SET", key, "1"), "-MOVED") {
			moved++
		}
	}
	if moved == 0 || moved == 4 {
		t.Errorf("of four keys, %d lie elsewhere", moved)
	}
}
