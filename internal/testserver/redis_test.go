package testserver_test

import (
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
