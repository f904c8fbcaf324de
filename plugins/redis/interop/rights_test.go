package interop_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// rights returns the ACL rules of a user of one namespace: those that
// docs/redis.md gives.
func rights(t *testing.T, name, password, boards string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testserver.Root(t), "docs", "redis.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rules, ok := strings.CutPrefix(line, "user boardd on >SECRET "); ok {
			return name + " on >" + password + " " + strings.ReplaceAll(strings.TrimSpace(rules), namespace, boards)
		}
	}
	t.Fatal("docs/redis.md gives no ACL")
	return ""
}

// TestFewRights: with no more rights than the documentation asks for, TaskFlow's
// changes are seen by its notifications, and everything that is no board of ours
// is out of reach.
func TestFewRights(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	if got := b.server.Command("ACL", "SETUSER", rights(t, "worker", "secret", namespace)); got != "+OK" {
		t.Fatal(got)
	}
	d, err := store.Open(t.Context(), driver.Config{Settings: []byte(`{"address":"` + b.server.Addr + `","username":"worker","password":"secret"}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"` + namespace + `"}`), Window: time.Hour}); err != nil {
		t.Fatal(err)
	}
	b.d = d
	changes := b.watch()
	testserver.Eventually(t, "two patterns of notifications are subscribed to", func() bool { return b.server.Command("PUBSUB", "NUMPAT") == ":2" })
	id := b.pythonID(b.python.Post("theirs", nil))
	b.ok(b.python.Claim(id.String(), "conductor", 60))
	for deadline := time.After(time.Minute); ; {
		select {
		case c := <-changes:
			if c.Job == id && c.Owner == "conductor" {
				return
			}
		case <-deadline:
			t.Fatalf("the claim is not reported; the job is read as %+v", b.read(id))
		}
	}
}

// TestFewRightsInCluster: the same rights, and those that docs/redis.md names besides, do for a
// cluster. No node refuses anything.
func TestFewRightsInCluster(t *testing.T) {
	t.Parallel()
	const tagged = "{" + namespace + "}"
	cluster := testserver.StartCluster(t, testserver.RedisOptions{})
	user := rights(t, "worker", "secret", tagged) + " " + clusterRights(t)
	for _, server := range cluster.Servers {
		if got := server.Command("ACL", "SETUSER", user); got != "+OK" {
			t.Fatal(got)
		}
	}
	d, err := store.Open(t.Context(), driver.Config{Settings: []byte(`{"cluster":["` + strings.Join(cluster.Addrs, `","`) + `"],"username":"worker","password":"secret"}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"` + tagged + `"}`), Window: time.Hour}); err != nil {
		t.Fatal(err)
	}
	b := &both{T: t, d: d}
	changes := b.watch()
	id := b.post("ours", nil)
	b.claim(id, "us", time.Minute)
	for c := range changes {
		if c.Job == id && c.Owner == "us" {
			break
		}
	}
	for _, server := range cluster.Servers {
		if got := server.Command("ACL", "LOG"); got != "*0" {
			t.Errorf("a node has refused something: %s", got)
		}
	}
}

// clusterRights are the rules that docs/redis.md gives for a cluster.
func clusterRights(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testserver.Root(t), "docs", "redis.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "On a Redis Cluster add `")
	rules, _, ended := strings.Cut(rest, "`")
	if !ok || !ended {
		t.Fatal("docs/redis.md gives no rights for a cluster")
	}
	return strings.Join(strings.Fields(rules), " ")
}

// TestNoRightsElsewhere: another namespace is refused, and the error says so.
func TestNoRightsElsewhere(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{Users: []string{rights(t, "worker", "secret", namespace)}})
	d, err := store.Open(t.Context(), driver.Config{Settings: []byte(`{"address":"` + server.Addr + `","username":"worker","password":"secret"}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	_, err = d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"other"}`), Window: time.Hour})
	if job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("another namespace: %v", err)
	}
}
