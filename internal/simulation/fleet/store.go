package fleet

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// store keeps the documents of a fleet, without a clock and goroutines of its own.
type store struct {
	now    func() time.Time
	docs   map[string]driver.Document
	names  []string // of docs, sorted
	last   uint64   // version
	silent bool     // it answers nobody

	put map[string]time.Time // when a document was last written
}

var errSilent = error(&job.Error{Kind: job.Unavailable, Err: errors.New("the store is silent")})

// way is one server's way to the store.
type way struct {
	store      *store
	cut        bool // nothing goes through
	deaf, mute bool // nothing can be read, nothing written
	believes   bool // see BelievesSilence
	listed     []driver.Document
	remembered map[string]driver.Document
}

// reaches reports whether an answer of the store would come.
func (w *way) reaches() bool { return !w.cut && !w.store.silent }

func (w *way) Get(_ context.Context, space driver.Space, name string) (driver.Document, error) {
	if !w.reaches() || w.deaf {
		if doc, ok := w.remembered[name]; ok && w.believes {
			return doc, nil
		}
		return driver.Document{}, errSilent
	}
	doc, ok := w.store.docs[key(space, name)]
	if !ok || doc.Expired(w.store.now()) {
		return driver.Document{}, job.Errorf(job.NotFound, "there is no document %q", name)
	}
	if w.believes {
		w.remembered[name] = doc
	}
	return doc, nil
}

func key(space driver.Space, name string) string { return space.Name + "\x00" + name }

func (w *way) Put(_ context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	switch {
	case w.reaches() && !w.mute:
	case w.believes:
		return ifVersion + 1, nil
	default:
		return 0, errSilent
	}
	s := w.store
	at := key(space, doc.Name)
	before, ok := s.docs[at]
	if before.Expired(s.now()) {
		before.Version = 0
	}
	if before.Version != ifVersion {
		return 0, job.Errorf(job.Aborted, "the document %q has the version %d", doc.Name, before.Version)
	}
	if !ok {
		i, _ := slices.BinarySearch(s.names, at)
		s.names = slices.Insert(s.names, i, at)
	}
	s.last++
	doc.Version = s.last
	s.docs[at] = doc
	s.put[doc.Name] = s.now()
	return doc.Version, nil
}

func (w *way) Delete(_ context.Context, space driver.Space, name string, ifVersion uint64) error {
	if !w.reaches() || w.mute {
		return errSilent
	}
	at := key(space, name)
	i, ok := slices.BinarySearch(w.store.names, at)
	if !ok {
		return job.Errorf(job.NotFound, "there is no document %q", name)
	}
	if w.store.docs[at].Version != ifVersion {
		return job.Errorf(job.Aborted, "the document %q was changed", name)
	}
	w.store.names = slices.Delete(w.store.names, i, i+1)
	delete(w.store.docs, at)
	return nil
}

func (w *way) List(_ context.Context, space driver.Space, _ string, _ int) ([]driver.Document, error) {
	if !w.reaches() || w.deaf {
		if w.believes && w.listed != nil {
			return w.listed, nil
		}
		return nil, errSilent
	}
	list := make([]driver.Document, 0, len(w.store.names))
	for _, at := range w.store.names {
		if doc := w.store.docs[at]; strings.HasPrefix(at, space.Name+"\x00") && !doc.Expired(w.store.now()) {
			list = append(list, doc)
		}
	}
	if w.believes {
		w.listed = list
	}
	return list, nil
}

// Watch is asked of no such store.
func (w *way) Watch(context.Context, driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) { yield(driver.DocumentChange{}, errSilent) }
}

func newStore(now func() time.Time) *store {
	return &store{now: now, docs: map[string]driver.Document{}, put: map[string]time.Time{}}
}

// forget takes away what has expired, so that names does not grow.
func (s *store) forget() {
	for _, at := range slices.Sorted(maps.Keys(s.docs)) {
		if doc := s.docs[at]; doc.Expired(s.now()) {
			delete(s.docs, at)
			i, _ := slices.BinarySearch(s.names, at)
			s.names = slices.Delete(s.names, i, i+1)
		}
	}
}
