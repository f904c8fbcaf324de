package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
)

// A placed is a boardd with boards whose places were chosen, written anew at will.
type placed struct {
	*testing.T
	program, config string
	server          *testserver.Server
}

// placeBoards starts a server with a backend and boards on it: name, setting, place and
// mode of each.
func placeBoards(t *testing.T, driver, address string, boards ...[4]string) *placed {
	t.Helper()
	p := &placed{T: t, program: withDriver(t, driver), config: filepath.Join(t.TempDir(), "boards.hcl")}
	p.write(driver, address, boards...)
	p.server = testserver.Start(t, p.program, "", "--config", p.config)
	return p
}

func (p *placed) write(driver, address string, boards ...[4]string) {
	p.Helper()
	setting := fmt.Sprintf("address = %q", address)
	if driver == "zookeeper" {
		setting = fmt.Sprintf("servers = [%q]", address)
	}
	text := fmt.Sprintf("token \"root\" {\n  roles = [\"operator\"]\n  secret = \"not-very-secret-1234567890\"\n}\nbackend \"main\" {\n  driver = %q\n  config = { %s }\n}\n", driver, setting)
	for _, b := range boards {
		text += fmt.Sprintf("board %q {\n  backend = \"main\"\n  config = { %s = %q }\n  mode = %q\n}\n", b[0], b[1], b[2], b[3])
	}
	if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

func (p *placed) run(board string, args ...string) (string, error) {
	c := exec.CommandContext(p.Context(), p.program, args...)
	c.Env = append(os.Environ(), "BOARDD_ADDR="+p.server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890", "BOARDD_BOARD="+board)
	out, err := c.CombinedOutput()
	return string(out), err
}

func (p *placed) done(board string, args ...string) string {
	p.Helper()
	out, err := p.run(board, args...)
	if err != nil {
		p.Fatalf("%s: boardd %v: %v\n%s\n%s", board, args, err, out, p.server.Log())
	}
	return out
}

// until waits for what a command prints.
func (p *placed) until(what, board string, done func(out string, err error) bool, args ...string) {
	p.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := p.run(board, args...)
		if done(out, err) {
			return
		}
		if time.Now().After(deadline) {
			p.Fatalf("after a minute still not so: %s\n%v\n%s\n%s", what, err, out, p.server.Log())
		}
	}
}

func holds(text string) func(string, error) bool {
	return func(out string, err error) bool { return err == nil && strings.Contains(out, text) }
}

// TestSiblingsAreServed has TaskFlow's normal layout, boards beside each other below one
// folder, served and observed by one server, with a job of TaskFlow's on each. A place
// stays its board's when the server is gone, and is freed by a command that the refusal
// names.
func TestSiblingsAreServed(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	address := z.Servers()[0]
	boards := [][4]string{
		{"octavia", "path", "/octavia_jobboard", "serve"},
		{"other", "path", "/other_jobboard", "serve"},
		{"alpha", "path", "/p/alpha", "serve"},
		{"beta", "path", "/p/beta", "serve"},
		{"gamma", "path", "/p/gamma", "observe"},
	}
	p := placeBoards(t, "zookeeper", address, boards...)
	f := testserver.StartTaskFlow(t)
	for _, b := range boards {
		python := f.Connect(b[0], testserver.Args{"board": "zookeeper", "hosts": address, "path": b[2]}, 0)
		python.Post("on "+b[0], nil)
		p.until("what TaskFlow posted is listed", b[0], holds("on "+b[0]), "job", "list")
	}
	out := p.done("", "backend", "places", "main")
	for _, want := range []string{"path /octavia_jobboard default octavia ", "path /p/alpha default alpha ", "path /p/beta default beta "} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("the places are, without %s:\n%s", want, out)
		}
	}
	if strings.Contains(out, "gamma") {
		t.Errorf("a board that is only observed has a place:\n%s", out)
	}
	if out, err := p.run("", "backend", "release", "main", "path /p/alpha"); err == nil || !strings.Contains(out, "FAILED_PRECONDITION") || !strings.Contains(out, "force") {
		t.Errorf("freeing the place of a board that is served: %v\n%s", err, out)
	}
	p.server.Stop()
	p.write("zookeeper", address, [4]string{"next", "path", "/p/alpha", "serve"}, [4]string{"inner", "path", "/p/beta/inner", "serve"})
	p.server.Restart()
	const named = "boardd backend release main 'path /p/alpha'"
	p.until("the refusal names the command", "", func(string, error) bool { return strings.Contains(p.server.Log(), named) }, "backend", "list")
	if out, err := p.run("", "backend", "release", "main", "path /p/alph"); err == nil || !strings.Contains(out, "NOT_FOUND") {
		t.Errorf("freeing a place that nobody has: %v\n%s", err, out)
	}
	p.done("", "backend", "release", "main", "path /p/alpha")
	p.done("", "backend", "release", "main", "path", "/p/beta")
	p.until("the board has the place and what lies there", "next", holds("on alpha"), "job", "list")
	p.until("so has one within another's", "inner", func(_ string, err error) bool { return err == nil }, "job", "list")
}

// TestNamespacesBesideEachOther serves namespaces of Redis of which one goes on where the
// other one ends: their keys don't collide. Those that do are refused.
func TestNamespacesBesideEachOther(t *testing.T) {
	t.Parallel()
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	boards := [][4]string{
		{"octavia", "namespace", "octavia", "serve"},
		{"eu", "namespace", "octavia:eu", "serve"},
		{"same", "namespace", "octavia", "serve"},
		{"ours", "namespace", "octavia:boardd", "serve"},
	}
	p := placeBoards(t, "redis", redis.Addr, boards[:2]...)
	f := testserver.StartTaskFlow(t)
	for _, b := range boards[:2] {
		python := f.Connect(b[0], testserver.Args{"board": "redis", "port": portOf(redis.Addr), "namespace": b[2]}, 0)
		posted := python.Post("on "+b[0], nil)
		if err := python.Claim(posted.UUID, "taskflow", 0); err != nil {
			t.Fatal(err)
		}
		p.until("the claim is seen", b[0], holds("taskflow"), "job", "list")
		p.done(b[0], "job", "post", "more")
	}
	for _, b := range boards[:2] {
		var counts struct{ Unclaimed, Claimed string }
		if err := json.Unmarshal([]byte(p.done(b[0], "job", "count", "-o", "json")), &counts); err != nil || counts.Unclaimed != "1" || counts.Claimed != "1" {
			t.Errorf("%s: counted %+v, %v; want one of each", b[0], counts, err)
		}
		out, err := p.run(b[0], "doctor", "--config", p.config, "--board", b[0])
		if strings.Contains(out, "owner-without-job") || strings.Contains(out, "leaked") {
			t.Errorf("%s: the other board's keys are found to be in the way: %v\n%s", b[0], err, out)
		}
	}
	late := placeBoards(t, "redis", redis.Addr, boards[2:]...) // the others have their places by now
	for _, b := range boards[2:] {
		if out, err := late.run(b[0], "job", "list"); err == nil {
			t.Errorf("%s is served:\n%s", b[2], out)
		}
	}
}
