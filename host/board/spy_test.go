package board

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// spy is a driver that fails as a test says, and that watches whether the board
// keeps to its side of the contract.
type spy struct {
	driver.Driver
	t testing.TB

	mu    sync.Mutex
	other driver.Driver // if not nil, used instead
	busy  map[job.ID]bool

	// The hooks are nil or set before the board runs.
	apply  func(ctx context.Context, ops []driver.Op, next func(context.Context, []driver.Op) []driver.Result) []driver.Result
	open   func(spec driver.BoardSpec, status driver.BoardStatus) (driver.BoardStatus, error)
	watch  func(ctx context.Context, after driver.Position, next iter.Seq2[driver.Changes, error]) iter.Seq2[driver.Changes, error]
	read   func(ids []job.ID) error
	cut    chan struct{} // ends a stream of changes
	page   func()        // after each page of a scan
	scans  int
	counts int
}

func (s *spy) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	status, err := s.store().OpenBoard(ctx, spec)
	if err != nil || s.open == nil {
		return status, err
	}
	return s.open(spec, status)
}

func (s *spy) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	ids := opIDs(ops)
	s.hold(ids)
	defer s.letGo(ids)
	next := func(ctx context.Context, ops []driver.Op) []driver.Result { return s.store().Apply(ctx, board, ops) }
	if s.apply != nil {
		return s.apply(ctx, ops, next)
	}
	return next(ctx, ops)
}

func opIDs(ops []driver.Op) (ids []job.ID) {
	for i := range ops {
		if c := ops[i].Claim; c != nil {
			for j := range c.Candidates {
				ids = append(ids, c.Candidates[j].Job)
			}
			continue
		}
		ids = append(ids, ops[i].Job)
	}
	return ids
}

func (s *spy) hold(ids []job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil {
		s.busy = make(map[job.ID]bool)
	}
	for _, id := range ids {
		if s.busy[id] {
			s.t.Errorf("two ops under way for job %v", id)
		}
		s.busy[id] = true
	}
}

func (s *spy) letGo(ids []job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.busy, id)
	}
}

func (s *spy) Read(ctx context.Context, board string, ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	if s.read != nil {
		if err := s.read(ids); err != nil {
			return nil, err
		}
	}
	return s.store().Read(ctx, board, ids, parts)
}

func (s *spy) Scan(ctx context.Context, board string, req driver.ScanRequest) iter.Seq2[driver.Page, error] {
	s.mu.Lock()
	s.scans++
	s.mu.Unlock()
	pages := s.store().Scan(ctx, board, req)
	if s.page == nil {
		return pages
	}
	return func(yield func(driver.Page, error) bool) {
		for page, err := range pages {
			if !yield(page, err) {
				return
			}
			s.page()
		}
	}
}

func (s *spy) Watch(ctx context.Context, board string, after driver.Position) iter.Seq2[driver.Changes, error] {
	ctx, cancel := context.WithCancel(ctx)
	if s.cut != nil {
		go func() {
			select {
			case <-s.cut:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	next := cancelAfter(s.store().Watch(ctx, board, after), cancel)
	if s.watch != nil {
		return s.watch(ctx, after, next)
	}
	return next
}

func (s *spy) Count(ctx context.Context, board string) (driver.Counts, error) {
	s.mu.Lock()
	s.counts++
	s.mu.Unlock()
	return s.store().Count(ctx, board)
}

func cancelAfter(next iter.Seq2[driver.Changes, error], cancel context.CancelFunc) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		defer cancel()
		next(yield)
	}
}

// set exchanges the store behind the driver.
func (s *spy) set(d driver.Driver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.other = d
}

// losing is a store in whose place, when it is lost, comes an empty one of a later generation. A host
// that opens that one is told of the loss.
func losing(t *testing.T, loss string) (s *spy, lose func()) {
	t.Helper()
	var lost atomic.Bool
	s = &spy{Driver: openStore(t), t: t, cut: make(chan struct{}, 1), open: func(_ driver.BoardSpec, status driver.BoardStatus) (driver.BoardStatus, error) {
		if status.Generation = 1; lost.Load() {
			status.Generation, status.Loss = 2, loss
		}
		return status, nil
	}}
	return s, func() {
		s.set(openStore(t))
		lost.Store(true)
		s.cut <- struct{}{}
	}
}

func (s *spy) store() driver.Driver {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.other != nil {
		return s.other
	}
	return s.Driver
}

func (s *spy) Documents() driver.Documents { return s.store().Documents() }
