package main

import (
	"fmt"
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

// oddPostings are jobs that TaskFlow lists and that boardd cannot take, by the field of
// the hash: what is odd of the posting, in Python, and what boardd says of it.
var oddPostings = []struct{ field, odd, reason string }{
	{"10000000-0000-4000-8000-000000000001", "sequence='7', priority='VERY_HIGH'", "sequence: it is text: want a whole number of 0 or more"},
	{"10000000-0000-4000-8000-000000000002", "sequence=7.5", "sequence: it is a float: want a whole number of 0 or more"},
	{"10000000-0000-4000-8000-000000000003", "sequence=-7", "sequence: it is a number below 0: want a whole number of 0 or more"},
	{"10000000-0000-4000-8000-000000000004", "name=5", "name: it is a number: want text"},
	{"1A000000-0000-4000-8000-000000000005", "sequence=8", "is no uuid in lower case"},
}

// TestTaskFlowListsBoarddLists has postings on Redis of which TaskFlow reads what boardd
// cannot: whatever TaskFlow lists, boardd lists, and says why it takes it for no job.
func TestTaskFlowListsBoarddLists(t *testing.T) {
	t.Parallel()
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	p := placeBoards(t, "redis", redis.Addr, [4]string{"b", "namespace", "octavia", "serve"})
	p.done("b", "job", "post", "good")
	const python = "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-I", "-c", "import taskflow, redis").Run(); err != nil {
		testneed.Skip(t, python+" has no taskflow and redis")
	}
	const program = `
import sys
from oslo_utils import timeutils
from taskflow.jobs import backends, base
board = backends.fetch("b", {"board": "redis", "host": "127.0.0.1", "port": int(sys.argv[1]), "namespace": "octavia"})
board.connect()
for field, odd in zip(sys.argv[2::2], sys.argv[3::2]):
    posting = base.format_posting(field, "odd", created_on=timeutils.utcnow(), priority=base.JobPriority.NORMAL)
    posting.update({"sequence": 6}, **eval("dict(" + odd + ")"))
    board._client.hset(board.listings_key, field, board._dumps(posting))
print(*[job.key.decode() for job in board.iterjobs()])
`
	args := []string{"-I", "-c", program, portOf(redis.Addr)}
	for _, o := range oddPostings {
		args = append(args, o.field, o.odd)
	}
	listed, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, listed)
	}
	p.until("all are counted", "b", holds(fmt.Sprintf(`"corrupt":"%d"`, len(oddPostings))), "job", "count", "-o", "json")
	plain, full := p.done("b", "job", "list"), p.done("b", "job", "list", "-o", "json")
	for _, o := range oddPostings {
		if !strings.Contains(string(listed), o.field) {
			t.Errorf("TaskFlow does not list %s (%s):\n%s", o.field, o.odd, listed)
		}
		for _, out := range []string{plain, full} {
			if !strings.Contains(strings.ToLower(out), strings.ToLower(o.field)+" ") && out == plain ||
				!strings.Contains(out, o.field) && out == full || !strings.Contains(out, o.reason) || !strings.Contains(out, "CORRUPT") {
				t.Errorf("the list lacks %s (%s) with %q:\n%s", o.field, o.odd, o.reason, out)
			}
		}
		if out, err := p.run("b", "job", "get", strings.ToLower(o.field)); err == nil || !strings.Contains(out, "CORRUPT") || !strings.Contains(out, o.reason) {
			t.Errorf("boardd job get %s (%s), which wants %q: %v\n%s", o.field, o.odd, o.reason, err, out)
		}
	}
}

// createNodes creates nodes in ZooKeeper, of the given paths and data, as any program
// of Python's would.
func createNodes(t *testing.T, servers string, nodes ...string) {
	t.Helper()
	const program = `
import sys
from kazoo.client import KazooClient
client = KazooClient(hosts=sys.argv[1])
client.start(timeout=120)
for path, data in zip(sys.argv[2::2], sys.argv[3::2]):
    client.create(path, data.encode())
client.stop()
`
	withKazoo(t, program, append([]string{servers}, nodes...)...)
}

// withKazoo runs a program of Python that has the client of TaskFlow.
func withKazoo(t *testing.T, program string, args ...string) {
	t.Helper()
	const python = "/usr/bin/python3"
	if err := exec.CommandContext(t.Context(), python, "-I", "-c", "import kazoo").Run(); err != nil {
		testneed.Skip(t, python+" has no kazoo")
	}
	command := exec.CommandContext(t.Context(), python, append([]string{"-I", "-c", program}, args...)...)
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
	if !strings.Contains(metricsOf(p.T, p.server.Addr, "not-very-secret-1234567890"), `boardd_jobs{board="b",state="corrupt",tenant="default"} 2`) {
		p.Error("the metrics do not count them")
	}
}
