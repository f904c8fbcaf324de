package store

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
)

// wakers are those who are told for which boards postings were left. As long as there are any,
// there is a look into the inbox for all of them, also while no board is open here.
type wakers struct {
	mu     sync.Mutex
	all    map[*waker]bool
	closed bool
}

// A waker is one of them, and the boards that he is still to be told of.
type waker struct {
	poll.Bell
	begun bool            // he was told of all that waited at first; only his own goroutine asks
	names map[string]bool // guarded by wakers.mu
}

var _ driver.Waker = (*store)(nil)

// WatchInboxes tells of what waits, and then of what each look finds. Between the two nothing is
// missed: who asks what waits is told of the next look already.
func (s *store) WatchInboxes(ctx context.Context) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		w := s.wakers.join()
		defer s.wakers.leave(w)
		poll.Inboxes(ctx, &w.Bell, func(ctx context.Context) ([]string, error) {
			if w.begun {
				return s.wakers.take(w), nil
			}
			waiting, err := s.boardsWaiting(ctx)
			w.begun = err == nil
			return append(waiting, s.wakers.take(w)...), err
		})(yield)
	}
}

// boardsWaiting asks for which boards postings wait. It is asked once by each stream.
func (s *store) boardsWaiting(ctx context.Context) (names []string, err error) {
	return s.namesOf(ctx, `SELECT name FROM {s}.boards WHERE board IN (SELECT DISTINCT board FROM {s}.inbox WHERE refused IS NULL)`)
}

// namesOf runs a statement that reads names of boards.
func (s *store) namesOf(ctx context.Context, text string, args ...any) (names []string, err error) {
	conn, err := s.begin(ctx, func(queue *pgx.Batch) {
		names = nil
		queue.Queue(beginRead)
		queue.Queue(local)
		queue.Queue(s.sql(text), args...).Query(func(rows pgx.Rows) error {
			var name []byte
			_, err := pgx.ForEachRow(rows, []any{&name}, func() error {
				names = append(names, string(name))
				return nil
			})
			return err
		})
		queue.Queue("COMMIT")
	})
	if err != nil {
		return nil, err
	}
	s.abandon(conn)
	return names, nil
}

func (l *wakers) join() *waker {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &waker{names: map[string]bool{}}
	if l.all == nil {
		l.all = map[*waker]bool{}
	}
	if l.all[w] = true; l.closed {
		w.Close()
	}
	return w
}

func (l *wakers) leave(w *waker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, w)
}

// any reports whether somebody is told.
func (l *wakers) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all) > 0
}

// take returns what one is still to be told of.
func (l *wakers) take(w *waker) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := slices.Collect(maps.Keys(w.names))
	clear(w.names)
	return names
}

// tell tells all of them.
func (l *wakers) tell(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.all {
		for _, name := range names {
			w.names[name] = true
		}
		w.Ring()
	}
}

// close ends all streams.
func (l *wakers) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for w := range l.all {
		w.Close()
	}
}

// wake tells for which boards a look has found something. The store is asked for the names of
// those that are not open here.
func (f *inboxFollower) wake(ctx context.Context, left map[int64][]int64) error {
	if len(left) == 0 || !f.wakers.any() {
		return nil
	}
	var names []string
	var others []int64
	for id := range left {
		if b := f.known[id]; b != nil {
			names = append(names, b.Name)
		} else {
			others = append(others, id)
		}
	}
	if others != nil {
		more, err := f.namesOf(ctx, `SELECT name FROM {s}.boards WHERE board = ANY($1)`, others)
		if err != nil {
			return err
		}
		names = append(names, more...)
	}
	f.wakers.tell(names)
	return nil
}
