package plugin

import (
	"context"
	"iter"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A store is a driver that does what a test wants of it.
type store struct {
	config driver.Config
	apply  func(ctx context.Context, board string, ops []driver.Op) []driver.Result
	scan   func(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error]
	read   func(ids []job.ID) []driver.Record
	watch  func() // called as a watch begins
	caps   driver.Capabilities

	mu      sync.Mutex
	open    map[string]driver.BoardSpec
	batches [][]driver.Op
	docs    map[string]driver.Document
	closed  bool
}

func storeProgram() driver.Program {
	return driver.Program{
		Info: driver.Info{
			Name: "store", Version: "1.2.3", Summary: "keeps nothing",
			Config: driver.Schema{Fields: []driver.Field{{Name: "address", Type: driver.String, Doc: "where it is"}}},
		},
		Open: func(_ context.Context, c driver.Config) (driver.Driver, error) { return newStore(c), nil },
	}
}

func newStore(c driver.Config) *store {
	return &store{config: c, caps: driver.CapabilityAll(), open: map[string]driver.BoardSpec{}, docs: map[string]driver.Document{}}
}

func programOf(s *store) driver.Program {
	p := storeProgram()
	p.Open = func(_ context.Context, c driver.Config) (driver.Driver, error) {
		s.config = c
		return s, nil
	}
	return p
}

func (s *store) OpenBoard(_ context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[spec.Name] = spec
	return driver.BoardStatus{Generation: 1, Durability: driver.Volatile, Capabilities: s.caps, Window: spec.Window, Witness: []byte("m")}, nil
}

func (s *store) DropBoard(_ context.Context, board string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, board)
	return nil
}

func (s *store) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	s.mu.Lock()
	s.batches = append(s.batches, ops)
	s.mu.Unlock()
	if s.apply != nil {
		return s.apply(ctx, board, ops)
	}
	results := make([]driver.Result, len(ops))
	for i := range ops {
		results[i] = driver.Result{Position: 1, Version: ops[i].Version + 1}
	}
	return results
}

func (s *store) Read(_ context.Context, _ string, ids []job.ID, _ driver.Parts) ([]driver.Record, error) {
	if s.read != nil {
		return s.read(ids), nil
	}
	records := make([]driver.Record, len(ids))
	for i := range ids {
		records[i] = driver.Record{Posting: driver.Posting{ID: ids[i]}, State: job.Unclaimed, Version: 1}
	}
	return records, nil
}

func (s *store) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	if s.scan != nil {
		return s.scan(ctx, board, req)
	}
	return func(yield func(driver.Page, error) bool) { yield(driver.Page{Position: 9}, nil) }
}

func (s *store) Watch(ctx context.Context, _ string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		if s.watch != nil {
			s.watch()
		}
		for ctx.Err() == nil {
			after++
			c := driver.Change{Event: job.Posted, Job: job.ID{1}, Position: after, Record: &driver.Record{Posting: driver.Posting{ID: job.ID{1}}}}
			if !yield(driver.Changes{List: []driver.Change{c}, Position: after}, nil) {
				return
			}
			if after > 100 {
				<-ctx.Done()
			}
		}
	}
}

func (s *store) Count(context.Context, string) (driver.Counts, error) {
	return driver.Counts{Open: 3, Limits: map[string]int64{"k": 2}}, nil
}

func (s *store) Documents() driver.Documents { return storeDocs{s} }

func (s *store) Health(context.Context) error { return nil }

func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

type storeDocs struct{ s *store }

func (d storeDocs) Get(_ context.Context, _ driver.Space, name string) (driver.Document, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	doc, ok := d.s.docs[name]
	if !ok {
		return doc, job.Errorf(job.NotFound, "there is no document %q", name)
	}
	return doc, nil
}

func (d storeDocs) Put(_ context.Context, _ driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	if d.s.docs[doc.Name].Version != ifVersion {
		return 0, job.Errorf(job.Aborted, "the document %q has another version", doc.Name)
	}
	doc.Version = ifVersion + 1
	d.s.docs[doc.Name] = doc
	return doc.Version, nil
}

func (d storeDocs) Delete(_ context.Context, _ driver.Space, name string, _ uint64) error {
	d.s.mu.Lock()
	defer d.s.mu.Unlock()
	delete(d.s.docs, name)
	return nil
}

func (d storeDocs) List(_ context.Context, _ driver.Space, _ string, limit int) ([]driver.Document, error) {
	docs := make([]driver.Document, limit)
	for i := range docs {
		docs[i] = driver.Document{Name: string(rune('a' + i)), Data: make([]byte, 1<<20), Version: 1, Expires: time.Unix(5, 0).UTC()}
	}
	return docs, nil
}

func (d storeDocs) Watch(ctx context.Context, _ driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		if yield(driver.DocumentChange{Document: driver.Document{Name: "x", Version: 1}}, nil) && yield(driver.DocumentChange{Synced: true}, nil) {
			<-ctx.Done()
		}
	}
}
