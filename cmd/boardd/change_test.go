package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/client"
)

const changingConfig = `
plugin_dir = %q
token "root" {
  roles  = ["operator"]
  secret = "not-very-secret-1234567890"
}
backend "main" {
  driver = "redis"
  config = { address = %q }
}
board "default" {
  backend = "main"
  config  = { namespace = "changing" }
  %s
}
`

// TestChangeUnderLoad has a server take up another lease, a limit, policies and a new
// program of its driver, while callers work on its board. None of their calls fails.
func TestChangeUnderLoad(t *testing.T) {
	t.Parallel()
	program := testserver.Build(t, "./cmd/boardd")
	driver := testserver.Build(t, "./plugins/redis")
	redis := testserver.StartRedis(t, testserver.RedisOptions{})
	folder, config := t.TempDir(), filepath.Join(t.TempDir(), "boards.hcl")
	configure := func(board string) {
		t.Helper()
		if err := os.WriteFile(config, fmt.Appendf(nil, changingConfig, folder, redis.Addr, board), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := func() { // as an installation does it: the file is another one
		t.Helper()
		text, err := os.ReadFile(driver)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, ".redis"), text, 0o700)
		}
		if err == nil {
			err = os.Rename(filepath.Join(folder, ".redis"), filepath.Join(folder, "redis"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install()
	configure("")
	server := testserver.Start(t, program, "", "--config", config)
	c, err := client.New(client.Config{Addr: server.Addr, Token: "not-very-secret-1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := startLoad(t, c.Board("default"))
	for _, change := range []struct {
		what, want string
		do         func()
	}{
		{"nothing", "nothing was changed", func() {}},
		{"a lease", "board default/default: changed", func() { configure(`lease = "77s"`) }},
		{"a limit", "board default/default: changed", func() { configure("lease = \"77s\"\nlimits {\n open_jobs = 100000\n claims = 100000\n}") }},
		{"a policy", "board default/default: changed", func() { configure(`ordering { policy = "aging" }`) }},
		{"another policy", "board default/default: changed", func() { configure(`ordering { policy = "deadline" }`) }},
		{"no policy", "board default/default: changed", func() { configure("") }},
		{"the driver's program", "backend main: its driver's program was replaced", install},
		{"and again", "backend main: its driver's program was replaced", install},
	} {
		l.more(10 * loadCallers)
		before := server.Drivers()
		change.do()
		reload := exec.CommandContext(t.Context(), program, "reload")
		reload.Env = append(os.Environ(), "BOARDD_ADDR="+server.Addr, "BOARDD_TOKEN=not-very-secret-1234567890")
		if out, err := reload.CombinedOutput(); err != nil || !strings.Contains(string(out), change.want) {
			t.Errorf("%s: %v\n%s\nwant %s", change.what, err, out, change.want)
		}
		l.more(10 * loadCallers)
		if strings.Contains(change.want, "program") {
			testserver.Eventually(t, "the old driver is gone", func() bool { // the processes of policies stay
				now := server.Drivers()
				return slices.ContainsFunc(before, func(pid int) bool { return !slices.Contains(now, pid) })
			})
		}
	}
	calls := l.end()
	if t.Failed() {
		t.Log(server.Log())
	}
	t.Logf("%d calls", calls)
}
