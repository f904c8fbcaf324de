package catalog_test

import (
	"cmp"
	"context"
	"sync"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
)

// tally counts what is asked of documents, and answers as a test wants it to.
type tally struct {
	driver.Documents

	mu     sync.Mutex
	writes map[string]int // by space
	lists  map[string]int // likewise
	bytes  int
	most   int                                                       // bytes of a document
	fail   func(op string, space driver.Space) (before, after error) // instead of doing it, and after it was done
}

func tallied(t testing.TB) *tally {
	t.Helper()
	return counting(store(t))
}

func counting(docs driver.Documents) *tally {
	return &tally{Documents: docs, writes: map[string]int{}, lists: map[string]int{}}
}

// failing has calls fail from now on.
func (d *tally) failing(fail func(op string, space driver.Space) (before, after error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = fail
}

// asked returns how a call fails.
func (d *tally) asked(op string, space driver.Space) (before, after error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail == nil {
		return nil, nil
	}
	return d.fail(op, space)
}

func (d *tally) wrote(space driver.Space, size int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.writes[space.Name]++
	d.bytes += size
	d.most = max(d.most, size)
}

// listed returns how often a space was listed.
func (d *tally) listed(space driver.Space) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lists[space.Name]
}

// since returns what was written since the last call.
func (d *tally) since() (writes map[string]int, bytes, most int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	writes, bytes, most = d.writes, d.bytes, d.most
	d.writes, d.bytes, d.most = map[string]int{}, 0, 0
	return writes, bytes, most
}

func (d *tally) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	if err, _ := d.asked("get", space); err != nil {
		return driver.Document{}, err
	}
	return d.Documents.Get(ctx, space, name)
}

func (d *tally) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	before, after := d.asked("put", space)
	if before != nil {
		return 0, before
	}
	d.wrote(space, len(doc.Data))
	version, err := d.Documents.Put(ctx, space, doc, ifVersion)
	if err == nil && after != nil {
		return 0, after
	}
	return version, err
}

func (d *tally) Delete(ctx context.Context, space driver.Space, name string, ifVersion uint64) error {
	before, after := d.asked("delete", space)
	if before != nil {
		return before
	}
	d.wrote(space, 0)
	return cmp.Or(d.Documents.Delete(ctx, space, name, ifVersion), after)
}

// List fails with the first part of what there is.
func (d *tally) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	failure, _ := d.asked("list", space)
	d.mu.Lock()
	d.lists[space.Name]++
	d.mu.Unlock()
	list, err := d.Documents.List(ctx, space, after, limit)
	if failure != nil {
		return list[:len(list)/2], failure
	}
	return list, err
}
