package examples

import (
	"context"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// killed kills a driver without a host's retries in between: what it acknowledged
// is there, nothing reports a loss, and a watcher from before learns of all that
// came after its position.
func killed(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	spec := driver.BoardSpec{Name: "b"}
	start := func() (driver.Driver, *plugin.Process, driver.BoardStatus) {
		t.Helper()
		p, err := plugin.Start(ctx, plugin.Command{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		d, err := p.Open(ctx, driver.Config{DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		status, err := d.OpenBoard(ctx, spec)
		if err != nil || status.Loss != "" || status.Generation != 1 || status.Durability != driver.Durable {
			t.Fatalf("opened: %+v, %v; want a durable board of generation 1 and no loss", status, err)
		}
		spec.Witness = status.Witness
		return d, p, status
	}

	_, p, status := start()
	p.Abort()
	d, p, _ := start() // killed before there was anything to keep
	want := map[job.ID]bool{}
	for n := range byte(3) {
		id := job.ID{1 + n}
		r := d.Apply(ctx, "b", []driver.Op{{Kind: driver.Post, Job: id, Posting: &driver.Posting{ID: id, Details: []byte("{}")}}})[0]
		if r.Kind != job.NoKind {
			t.Fatalf("post: %v: %s", r.Kind, r.Message)
		}
		want[id] = true
		p.Abort()
		d, p, _ = start()
	}
	seen := map[job.ID]bool{}
	for step, err := range d.Watch(ctx, "b", status.Position) {
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range step.List {
			seen[change.Job] = true
		}
		if step.Resync {
			for page, err := range d.Scan(ctx, "b", driver.ScanRequest{}) {
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page.Records {
					seen[r.Posting.ID] = true
				}
			}
		}
		if len(seen) >= len(want) {
			break
		}
	}
	for id := range want {
		if !seen[id] {
			t.Errorf("job %v was acknowledged and is not seen", id)
		}
	}
}
