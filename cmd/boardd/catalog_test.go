package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
)

// TestFlushedCatalog empties the store of the catalog under two servers and stops one of
// them: the boards go on, nothing can be changed, everything says so, and what one of
// them exports brings all of it back to both.
func TestFlushedCatalog(t *testing.T) {
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		redis := testserver.StartRedis(t, testserver.RedisOptions{})
		flushCatalog(t, "redis", fmt.Sprintf("address = %q", redis.Addr), func() { redis.Command("FLUSHALL") })
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
		flushCatalog(t, "zookeeper", fmt.Sprintf("servers = [%q]", z.Servers()[0]), func() { removeNodes(t, z.Servers()[0]) })
	})
}

// removeNodes removes all nodes of a ZooKeeper but its own.
func removeNodes(t *testing.T, servers string) {
	t.Helper()
	const program = `
import sys
from kazoo.client import KazooClient
from kazoo.exceptions import NotEmptyError
client = KazooClient(hosts=sys.argv[1])
client.start(timeout=120)
for name in client.get_children("/"):
    while name != "zookeeper" and client.exists("/" + name):
        try:
            client.delete("/" + name, recursive=True)
        except NotEmptyError:
            pass # a server that runs wrote something meanwhile
client.stop()
`
	withKazoo(t, program, servers)
}

func flushCatalog(t *testing.T, driver, setting string, flush func()) {
	program := withDriver(t, driver)
	config := testserver.CatalogConfig(t, driver, setting, `backend "own" { driver = "embedded" }`)
	folder := t.TempDir()
	a := testserver.Start(t, program, folder, "--config", config)
	b := testserver.Start(t, program, t.TempDir(), "--config", config)
	run := func(s *testserver.Server, in string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), program, args...)
		c.Env = append(os.Environ(), "BOARDD_ADDR="+s.Addr, "BOARDD_TOKEN="+testserver.RootSecret, "BOARDD_BOARD=jobs")
		c.Stdin = strings.NewReader(in)
		out, err := c.CombinedOutput()
		return string(out), err
	}
	done := func(s *testserver.Server, in string, args ...string) string {
		t.Helper()
		out, err := run(s, in, args...)
		if err != nil {
			t.Fatalf("boardd %v: %v\n%s\n%s", args, err, out, s.Log())
		}
		return out
	}
	wants := func(out string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(out, w) {
				t.Errorf("%q is missing in:\n%s", w, out)
			}
		}
	}
	done(a, "", "board", "create", "jobs", "--backend", "own", "--record", "24h")
	done(b, "", "board", "list") // made on the other one a moment ago
	done(b, "", "job", "post", "elsewhere")
	made := strings.Fields(done(a, "", "token", "create", "ci", "--role", "worker", "--role", "poster"))
	worker := made[len(made)-1]
	done(a, "", "job", "post", "first")
	done(a, "", "job", "claim", "--owner", "w")
	recordings := filepath.Join(folder, "recordings", "default", "jobs")
	if _, err := os.Stat(recordings); err != nil {
		t.Fatalf("nothing is recorded: %v", err)
	}

	flush()
	inDoubt := func(s *testserver.Server, lost string) {
		t.Helper()
		testserver.Eventually(t, "the loss is noticed", func() bool {
			out, err := run(s, "", "catalog", "status")
			return err != nil && strings.Contains(out, lost+" are gone without having been deleted")
		})
		answer, err := http.Get(s.Addr + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text := make([]byte, 100)
		n, _ := answer.Body.Read(text)
		if answer.StatusCode != http.StatusOK || !strings.Contains(string(text[:n]), "the catalog is in doubt") {
			t.Errorf("/readyz: %d %s", answer.StatusCode, text[:n])
		}
		done(s, "", "job", "post", "second", "--token", worker)
		if out, err := run(s, "", "board", "create", "none", "--backend", "own"); err == nil || !strings.Contains(out, "boardd catalog status") {
			t.Errorf("a change: %v\n%s", err, out)
		}
		if out, err := run(s, "", "board", "delete", "jobs"); err == nil {
			t.Errorf("the board could be deleted: %s", out)
		}
	}
	inDoubt(a, "2")
	inDoubt(b, "2")
	wants(a.Log(), "the catalog is in doubt")
	a.Stop()
	out, err := exec.CommandContext(t.Context(), program, "doctor", "--config", config, "--data", folder).CombinedOutput()
	if err == nil {
		t.Errorf("doctor finds nothing: %s", out)
	}
	wants(string(out), "catalog-in-doubt", "2 are gone", "boardd catalog export | boardd catalog import -")
	a.Launch()
	testserver.Eventually(t, "the server is ready", a.Ready)
	inDoubt(a, "2")
	if _, err := os.Stat(recordings); err != nil {
		t.Errorf("the recording is gone: %v", err)
	}

	wants(done(a, done(a, "", "catalog", "export"), "catalog", "import", "-"), "written", "2")
	for _, s := range []*testserver.Server{a, b} {
		testserver.Eventually(t, "the doubt ends", func() bool { _, err := run(s, "", "catalog", "status"); return err == nil })
		wants(done(s, "", "board", "list"), "jobs")
		done(s, "", "job", "post", "third", "--token", worker)
	}
	done(b, "", "board", "create", "more", "--backend", "own")
	wants(done(a, "", "audit", "list"), "ImportCatalog", "ExportCatalog")

	flush()
	inDoubt(b, "3")
	done(b, "", "catalog", "accept")
	for _, s := range []*testserver.Server{a, b} {
		testserver.Eventually(t, "the board is given up", func() bool {
			out, err := run(s, "", "job", "post", "x")
			return err != nil && strings.Contains(out, "no board")
		})
	}
	testserver.Eventually(t, "the recording is taken away", func() bool { _, err := os.Stat(recordings); return os.IsNotExist(err) })
}
