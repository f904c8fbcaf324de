package store_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// trash returns the ids of a board's trash page by page, and what cannot be read.
func (b *bench) trash(req driver.ScanRequest) (ids []job.ID, bad, pages int) {
	b.Helper()
	req.Set = driver.TrashedJobs
	for range 20 {
		next := ""
		for page, err := range b.d.Scan(b.Context(), b.board, req) {
			if err != nil {
				b.Fatalf("Scan: %v", err)
			}
			for i := range page.Records {
				ids = append(ids, page.Records[i].Posting.ID)
			}
			bad, next = bad+len(page.Bad), page.Next
		}
		pages++
		if req.After = next; next == "" {
			return ids, bad, pages
		}
	}
	b.Fatalf("the scan has no end")
	return nil, 0, 0
}

// TestObserveTrash looks at a trash that was filled before any host saw the
// board, and by TaskFlow and a host after that.
func TestObserveTrash(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	p := newPython(t, server, "octavia_jobboard")
	var want []job.ID
	posted := []job.ID{p.post("a"), p.post("b"), p.post("c")}
	slices.Reverse(posted) // not the order in which they were posted
	for _, id := range posted {
		p.trash(id)
		want = append(want, id)
	}
	b := newBench(t, server, nil)
	ours := b.post("ours")
	b.must(driver.Op{Kind: driver.Trash, Job: ours})
	last := p.post("d")
	p.trash(last)
	want = append(want, ours, last)
	o := newBench(t, server, func(s *driver.BoardSpec) { s.Observe = true })
	ids, bad, _ := o.trash(driver.ScanRequest{})
	if diff := cmp.Diff(want, ids); diff != "" || bad != 0 {
		t.Errorf("the trash, %d bad: %s", bad, diff)
	}
	ids, _, pages := o.trash(driver.ScanRequest{Limit: 2})
	if diff := cmp.Diff(want, ids); diff != "" || pages != 3 {
		t.Errorf("two at a time, in %d pages: %s", pages, diff)
	}
	slices.Reverse(want)
	ids, _, pages = o.trash(driver.ScanRequest{Limit: 2, NewestFirst: true})
	if diff := cmp.Diff(want, ids); diff != "" || pages != 3 {
		t.Errorf("the newest first, in %d pages: %s", pages, diff)
	}
	p.ok(p.client.HSet(t.Context(), "octavia_jobboard:trash", "no uuid", "\x90"))
	if ids, bad, _ := o.trash(driver.ScanRequest{}); len(ids) != len(want) || bad != 1 {
		t.Errorf("with one that cannot be read: %d and %d bad", len(ids), bad)
	}
	for _, err := range o.d.Scan(t.Context(), o.board, driver.ScanRequest{Set: driver.TrashedJobs, After: "nonsense"}) {
		if job.KindOf(err) != job.Invalid {
			t.Errorf("a place that is none: %v", err)
		}
	}
}
