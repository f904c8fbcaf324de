package interop_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// TestFewRightsOfBoards: the rights do for boards that are made through the API, and with those
// that docs/redis.md names besides for boards of the configuration that have no namespace. Redis
// refuses nothing.
func TestFewRightsOfBoards(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(testserver.Root(t), "docs", "redis.md"))
	if err != nil || !strings.Contains(string(page), "add `~TENANT/*` and `&TENANT/*`") {
		t.Fatalf("docs/redis.md names no rights of boards without a namespace, %v", err)
	}
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	if got := server.Command("ACL", "SETUSER", rights(t, "worker", "secret", namespace)+" ~default/* &default/*"); got != "+OK" {
		t.Fatal(got)
	}
	for name, settings := range map[string]string{"default/made": `{"namespace":"boardd:{default/made}"}`, "default/declared": `{}`} {
		postAndHear(t, server, name, settings)
	}
	if got := server.Command("ACL", "LOG"); got != "*0" {
		t.Errorf("Redis has refused something: %s", got)
	}
}

// postAndHear posts on a board by one driver, and has another one tell of it.
func postAndHear(t *testing.T, server *testserver.Redis, name, settings string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var drivers [2]driver.Driver
	for i := range drivers {
		d, err := store.Open(ctx, driver.Config{Settings: []byte(`{"address":"` + server.Addr + `","username":"worker","password":"secret"}`)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if _, err := d.OpenBoard(ctx, driver.BoardSpec{Name: name, Settings: []byte(settings), Window: time.Hour}); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		drivers[i] = d
	}
	id := job.ID(random())
	if r := postWithKey(ctx, drivers[0], name, id); r.Kind != job.NoKind {
		t.Errorf("a post on %s: %v: %s", name, r.Kind, r.Message)
		return
	}
	for step, err := range drivers[1].Watch(ctx, name, 0) {
		if err != nil {
			t.Errorf("%s is not told of: %v", name, err)
			return
		}
		if slices.ContainsFunc(step.List, func(c driver.Change) bool { return c.Job == id }) {
			return
		}
	}
}

// postWithKey posts a job that has a key of its own.
func postWithKey(ctx context.Context, d driver.Driver, board string, id job.ID) driver.Result {
	posting := &driver.Posting{ID: id, Name: "ours", Details: []byte(`{}`), Digest: random()}
	keys := []driver.Key{{Name: id.String(), Open: true}}
	return d.Apply(ctx, board, []driver.Op{{Kind: driver.Post, Request: random(), Posting: posting, Keys: keys}})[0]
}

// TestFewRightsForKeys: with these rights the keys of jobs that have ended are dropped, as jobs
// with other keys come.
func TestFewRightsForKeys(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	if got := server.Command("ACL", "SETUSER", rights(t, "worker", "secret", namespace)); got != "+OK" {
		t.Fatal(got)
	}
	d, err := store.Open(t.Context(), driver.Config{Settings: []byte(`{"address":"` + server.Addr + `","username":"worker","password":"secret"}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"` + namespace + `"}`), Window: time.Hour}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		id := job.ID(random())
		if r := postWithKey(t.Context(), d, "b", id); r.Kind != job.NoKind {
			t.Fatalf("a post: %v: %s", r.Kind, r.Message)
		}
		if r := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Remove, Job: id, Event: job.CanceledEvent}})[0]; r.Kind != job.NoKind {
			t.Fatalf("the end of the job: %v: %s", r.Kind, r.Message)
		}
	}
	left := server.Command("HLEN", namespace+":boardd:keys")
	if n, err := strconv.Atoi(strings.TrimPrefix(left, ":")); err != nil || n < 1 || n > 50 {
		t.Errorf("%s keys are kept of 100 jobs that have ended, want the last few", left)
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
