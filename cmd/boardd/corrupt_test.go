package main

import (
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
	"github.com/boardd/boardd/internal/testserver"
)

// The jobs that another program has put on a board and nobody can read: one with a
// uuid, and one that has the uuid in capital letters on Redis, and on ZooKeeper none.
const unreadUUID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"

// TestCorruptIsSaid has postings on a board that cannot be read: every call that names
// one answers CORRUPT with the reason, and whatever shows the board shows that they are
// there.
func TestCorruptIsSaid(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		redis := testserver.StartRedis(t, testserver.RedisOptions{})
		p := placeBoards(t, "redis", redis.Addr, [4]string{"b", "namespace", "octavia", "serve"})
		p.done("b", "job", "post", "good")
		redis.Command("HSET", "octavia:listings", unreadUUID, "garbage")
		redis.Command("HSET", "octavia:listings", "7BA7B810-9DAD-11D1-80B4-00C04FD430C8", "garbage")
		p.saysCorrupt("7ba7b810-9dad-11d1-80b4-00c04fd430c8")
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
		p := placeBoards(t, "zookeeper", z.Servers()[0], [4]string{"b", "path", "/p/jobs", "serve"})
		p.done("b", "job", "post", "good")
		createNodes(t, strings.Join(z.Servers(), ","),
			"/p/jobs/job0000000098", `{"uuid": "`+unreadUUID+`", "name": 5, "details": {}}`, "/p/jobs/job0000000099", "garbage")
		p.saysCorrupt()
	})
}

// createNodes creates nodes in ZooKeeper, of the given paths and data, as any program
// of Python's would.
func createNodes(t *testing.T, servers string, nodes ...string) {
	t.Helper()
	const python = "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-I", "-c", "import kazoo").Run(); err != nil {
		testneed.Skip(t, python+" has no kazoo")
	}
	const program = `
import sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1])
client.start(timeout=120)
for path, data in zip(sys.argv[2::2], sys.argv[3::2]):
    client.create(path, data.encode())
client.stop()
`
	command := exec.CommandContext(t.Context(), python, append([]string{"-I", "-c", program, servers}, nodes...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func (p *placed) saysCorrupt(more ...string) {
	p.Helper()
	p.until("both are counted", "b", holds(`"corrupt":"2"`), "job", "count", "-o", "json")
	for _, uuid := range append([]string{unreadUUID}, more...) {
		for _, args := range [][]string{
			{"job", "get", uuid},
			{"job", "claim", uuid, "--owner", "w"},
			{"job", "cancel", uuid},
			{"job", "purge", uuid},
			{"job", "restore", uuid},
			{"job", "release", uuid, "--reason", "test"},
			{"job", "trash", uuid},
			{"job", "priority", uuid, "5"},
			{"job", "explain", uuid},
			{"job", "log", uuid},
		} {
			if out, err := p.run("b", args...); err == nil || !strings.Contains(out, "CORRUPT") {
				p.Errorf("boardd %v: %v\n%s", args, err, out)
			}
		}
	}
	for _, args := range [][]string{{"job", "list"}, {"job", "list", "-o", "json"}} {
		if out := p.done("b", args...); !strings.Contains(out, "CORRUPT") || !strings.Contains(out, unreadUUID) || !strings.Contains(out, "good") {
			p.Errorf("boardd %v shows not all:\n%s", args, out)
		}
	}
	if out := p.done("b", "board", "get", "b"); !strings.Contains(out, "2 entries") {
		p.Errorf("the board says nothing of what cannot be read:\n%s", out)
	}
	if out, err := p.run("b", "job", "claim", "--owner", "w", "--max", "5"); err != nil || !strings.Contains(out, "good") || strings.Contains(out, unreadUUID) {
		p.Errorf("what can be read is not claimed alone: %v\n%s", err, out)
	}
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.server.Addr+"/metrics", http.NoBody)
	if err != nil {
		p.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer not-very-secret-1234567890")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	if body, _ := io.ReadAll(answer.Body); !strings.Contains(string(body), `boardd_jobs{board="b",state="corrupt",tenant="default"} 2`) {
		p.Error("the metrics do not count them")
	}
}
