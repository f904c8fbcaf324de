package interop_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestNamespaces: both sides find each other's jobs under every sort of
// namespace, and no other board's.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	f := testserver.StartTaskFlow(t)
	d, err := store.Open(t.Context(), driver.Config{Settings: []byte(`{"address":"` + server.Addr + `"}`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	for name, tc := range map[string]struct{ python, settings any }{
		"none":         {nil, map[string]any{"no_namespace": true}},
		"a hash tag":   {"{octavia}board", map[string]any{"namespace": "{octavia}board"}},
		"not in ASCII": {"brett-ü:世", map[string]any{"namespace": "brett-ü:世"}},
		"with a glob":  {"a*[b]?", map[string]any{"namespace": "a*[b]?"}},
		"empty":        {"", map[string]any{"namespace": ""}},
		"the board's":  {"the board's", map[string]any{}},
	} {
		c := conf(server)
		c["namespace"] = tc.python
		python := f.Connect(name, c, 0)
		settings, err := json.Marshal(tc.settings)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: name, Settings: settings, Window: time.Hour}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := &driver.Posting{ID: random(), Name: "ours", Digest: random()}
		if r := d.Apply(t.Context(), name, []driver.Op{{Kind: driver.Post, Request: random(), Posting: p}})[0]; r.Kind != job.NoKind {
			t.Errorf("%s: %v %s", name, r.Kind, r.Message)
		}
		python.Post("theirs", nil)
		list, err := python.List(true)
		if err != nil || len(list) != 2 {
			t.Errorf("%s: TaskFlow lists %+v (%v)", name, list, err)
		}
		n := 0
		for page, err := range d.Scan(t.Context(), name, driver.ScanRequest{Set: driver.OpenJobs}) {
			if err != nil {
				t.Fatal(err)
			}
			n += len(page.Records)
		}
		if n != 2 {
			t.Errorf("%s: we see %d jobs", name, n)
		}
	}
}

// TestTrashBothWays: each side's trash is the other's, and a job comes back from
// it as it was.
func TestTrashBothWays(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	b.watch()
	theirs := b.pythonID(b.python.Post("theirs", testserver.Args{"python": `{"b": b"\x00"}`}))
	ours := b.post("ours", nil)
	before := b.read(theirs).Posting.Details
	for _, id := range []job.ID{theirs, ours} {
		b.ok(b.python.Claim(id.String(), "w", 0))
		b.ok(b.python.End("trash", id.String(), "w"))
		b.states("set aside by TaskFlow", id, job.Trashed, "COMPLETE", "")
		b.want(job.NoKind, "restore", driver.Op{Kind: driver.Restore, Job: id})
		b.states("restored", id, job.Unclaimed, "UNCLAIMED", "")
		b.ok(b.python.Claim(id.String(), "w", 0))
		b.ok(b.python.End("consume", id.String(), "w"))
		b.states("done", id, job.Complete, "COMPLETE", "")
	}
	if len(before) == 0 {
		t.Error("there were no details")
	}
	id := b.post("to be purged", nil)
	b.want(job.NoKind, "set aside", driver.Op{Kind: driver.Trash, Job: id, Precondition: driver.Free})
	b.want(job.NoKind, "purge", driver.Op{Kind: driver.Purge, Job: id})
	if got := b.server.Command("HEXISTS", namespace+":trash", id.String()); got != ":0" {
		t.Errorf("purged, and in TaskFlow's trash: %s", got)
	}
	if n := b.server.Command("EXISTS", namespace+":"+id.String()+".last_modified"); n != ":0" {
		t.Errorf("last_modified is left: %s", n)
	}
}

// TestNonblockingConductor claims what it works on again and again, and raises
// the owner's last_modified each time; nothing of it is for us to take.
func TestNonblockingConductor(t *testing.T) {
	t.Parallel()
	b := share(t, true)
	b.watch()
	id := b.pythonID(b.python.Post("long", testserver.Args{"book": true, "seconds": 4}))
	conductor := b.python.Go("conductor", testserver.Args{"board": "octavia", "name": "many", "kind": "nonblocking"})
	testserver.Eventually(t, "the conductor has it", func() bool { return b.read(id).State == job.Claimed })
	for b.read(id).State == job.Claimed {
		if r := b.tryClaim(id, "us", time.Minute); len(r.Claims) != 0 {
			t.Fatal("we could claim it")
		}
		time.Sleep(50 * time.Millisecond) // the work goes on
	}
	b.states("done", id, job.Complete, "COMPLETE", "")
	b.ok(b.python.Do("stop", testserver.Args{"name": "many"}, nil))
	var problem *string
	if b.ok(conductor(&problem)); problem != nil {
		t.Errorf("the conductor ended with %s", *problem)
	}
}
