package catalog_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// beside is documents of which each put is told to somebody first, who may answer it.
type beside struct {
	driver.Documents

	put func(put func() (uint64, error)) (uint64, error)
}

func (b *beside) Put(ctx context.Context, space driver.Space, d driver.Document, ifVersion uint64) (uint64, error) {
	put := func() (uint64, error) { return b.Documents.Put(ctx, space, d, ifVersion) }
	if b.put == nil {
		return put()
	}
	return b.put(put)
}

// TestAmend changes a board that others change at the same time, and in a store that does not
// always say what came of it.
func TestAmend(t *testing.T) {
	t.Parallel()
	at := catalog.At{Tenant: "acme", Name: "b"}
	for name, test := range map[string]struct {
		beside func(touch func(), put func() (uint64, error), tries int) (uint64, error)
		kind   job.Kind
		called int // how often the change is asked for
	}{
		"nobody beside": {func(_ func(), put func() (uint64, error), _ int) (uint64, error) { return put() }, job.NoKind, 1},
		"another change before it": {func(touch func(), put func() (uint64, error), tries int) (uint64, error) {
			if tries == 1 {
				touch()
			}
			return put()
		}, job.NoKind, 2},
		"another change each time": {func(touch func(), put func() (uint64, error), _ int) (uint64, error) {
			touch()
			return put()
		}, job.Aborted, 10},
		"an answer that is lost": {func(_ func(), put func() (uint64, error), tries int) (uint64, error) {
			version, err := put()
			if tries == 1 && err == nil {
				return 0, job.Errorf(job.OutcomeUnknown, "the answer was lost")
			}
			return version, err
		}, job.NoKind, 2},
		"a store that is away": {func(func(), func() (uint64, error), int) (uint64, error) {
			return 0, job.Errorf(job.Unavailable, "no route to the store")
		}, job.Unavailable, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				docs := store(t)
				others, _ := follow(t, docs, catalog.Options{})
				if _, err := others.CreateBoard(t.Context(), catalog.Board{Board: config.Board{Tenant: at.Tenant, Name: at.Name}}, 0); err != nil {
					t.Fatal(err)
				}
				mine := &beside{Documents: docs}
				c, _ := follow(t, mine, catalog.Options{})
				called, tries := 0, 0
				mine.put = func(put func() (uint64, error)) (uint64, error) {
					tries++
					return test.beside(func() { touch(t, others, at) }, put, tries)
				}
				got, err := c.Amend(t.Context(), at, func(b *catalog.Board) error {
					if called++; b.Placed {
						return catalog.ErrStands
					}
					b.Placed = true
					return nil
				})
				wantKind(t, name, err, test.kind)
				if called != test.called {
					t.Errorf("the change was asked for %d times, want %d", called, test.called)
				}
				now, err := others.Reread(t.Context(), at)
				if err != nil || now.Placed != (test.kind == job.NoKind) || test.kind == job.NoKind && got.Version != now.Version {
					t.Errorf("the store has %+v (%v), and Amend returned %+v", now, err, got)
				}
			})
		})
	}
}

// touch changes something else of a board.
func touch(t *testing.T, c *catalog.Catalog, at catalog.At) {
	t.Helper()
	b, err := c.Reread(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	b.Owner += "x"
	if _, err := c.UpdateBoard(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}
