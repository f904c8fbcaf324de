package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestEverythingAtOnce does all that a store can do from many goroutines, and
// compares at the end what is in memory with what is in the file.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s := openStore(t, path, options{limits: storageLimits{ringBytes: 8 << 10, changes: 500, journalBytes: 256 << 10}})
	boards := []string{"a", "b", "c"}
	dropped := []string{"dropped", "dropped too"} // each while the other is opened
	for _, name := range append(dropped, boards...) {
		openNamed(t, s, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var readers, writers sync.WaitGroup
	for _, name := range boards {
		readers.Go(func() { follow(ctx, t, s, name) })
		readers.Go(func() { scanAround(ctx, t, s, name) })
		for w := range 4 {
			writers.Go(func() { live(ctx, t, s, name, uint64(w)) })
		}
	}
	for _, name := range dropped {
		writers.Go(func() { dropAround(ctx, t, s, name) })
	}
	writers.Go(func() { writeDocuments(ctx, t, s) })
	writers.Wait()
	cancel()
	readers.Wait()

	before := countAll(t, s, boards)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, path, options{})
	defer s.Close()
	for _, name := range boards {
		openNamed(t, s, name)
	}
	if diff := cmp.Diff(before, countAll(t, s, boards)); diff != "" {
		t.Errorf("what was in memory differs from what is in the file (-memory +file)\n%s", diff)
	}
}

func openNamed(t *testing.T, s *Store, name string) {
	if _, err := s.OpenBoard(t.Context(), driver.BoardSpec{Name: name, MaxTombstones: 100, MaxFinals: 20}); err != nil {
		t.Error(err)
	}
}

func countAll(t *testing.T, s *Store, boards []string) []driver.Counts {
	t.Helper()
	var all []driver.Counts
	for _, name := range boards {
		c, err := s.Count(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

const stressJobs = 40 // of each worker

// live takes jobs through different lives.
func live(ctx context.Context, t *testing.T, s *Store, board string, worker uint64) {
	apply := func(op driver.Op) driver.Result {
		r := s.Apply(ctx, board, []driver.Op{op})[0]
		if r.Kind != job.NoKind {
			t.Errorf("board %s, op of kind %d: %v %s", board, op.Kind, r.Kind, r.Message)
		}
		return r
	}
	for n := range uint64(stressJobs) {
		id := numberedID(worker<<32 + n + 1)
		post := postOf(id)
		post.Limits = []driver.Limit{{Key: "all", Max: 1 << 40}}
		post.Attach = []driver.Attachment{{Name: "log", Data: []byte(board)}}
		apply(post)
		r := apply(claimOf(id, id))
		if len(r.Claims) != 1 {
			t.Errorf("no claim: %+v", r.Skipped)
			return
		}
		end := consumeOf(id, r.Claims[0].Token)
		switch n % 4 {
		case 0:
			end.Kind = driver.Release
		case 1:
			end.Kind = driver.Trash
		case 2:
			end.Ending = &driver.Ending{Outcome: job.Consumed, Keep: 1 << 40, Data: []byte("x"), KeepPosting: true, KeepAttached: true}
		}
		apply(end)
	}
}

// follow watches a board and checks that no change is left out.
func follow(ctx context.Context, t *testing.T, s *Store, board string) {
	last := driver.Position(0)
	for changes, err := range s.Watch(ctx, board, 0) {
		if err != nil {
			if !errors.Is(err, job.Interrupted) {
				t.Errorf("watch of %s: %v", board, err)
			}
			return
		}
		for _, c := range changes.List {
			if c.Position != last+1 {
				t.Errorf("board %s: change %d comes after %d", board, c.Position, last)
			}
			last = c.Position
		}
		last = changes.Position
	}
}

func scanAround(ctx context.Context, t *testing.T, s *Store, board string) {
	for ctx.Err() == nil {
		for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs, driver.EndedJobs} {
			for page, err := range s.Scan(ctx, board, driver.ScanRequest{Set: set, Parts: driver.Details | driver.Attached}) {
				if err != nil && !errors.Is(err, job.Interrupted) || len(page.Bad) > 0 {
					t.Errorf("scan of %s: %v, %v", board, err, page.Bad)
				}
			}
		}
	}
}

func dropAround(ctx context.Context, t *testing.T, s *Store, name string) {
	for n := range uint64(40) {
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.DropBoard(ctx, name); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			r := s.Apply(ctx, name, []driver.Op{postOf(numberedID(n + 1))})[0]
			if r.Kind != job.NoKind && r.Kind != job.Precondition {
				t.Errorf("a post on a board that is dropped: %v %s", r.Kind, r.Message)
			}
		})
		wg.Wait()
		openNamed(t, s, name)
	}
}

func writeDocuments(ctx context.Context, t *testing.T, s *Store) {
	space := driver.Space{Name: "catalog"}
	for n := range 40 {
		name := fmt.Sprint("d", n%4)
		doc, err := s.Documents().Get(ctx, space, name)
		if err != nil && !errors.Is(err, job.NotFound) {
			t.Error(err)
		}
		if _, err := s.Documents().Put(ctx, space, driver.Document{Name: name, Data: []byte{byte(n)}}, doc.Version); err != nil {
			t.Error(err)
		}
	}
}
