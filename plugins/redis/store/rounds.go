package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// How often every board that somebody watches is looked at. The more boards a server has,
// the more rarely, so that all looks together cost Redis the same.
const (
	roundEach = 3 * time.Millisecond // for each board
	roundTime = 5 * time.Second      // at least
	roundRest = time.Minute          // at most
	roundSize = 64                   // boards in one trip
)

// rounds look at all boards that somebody watches, many in one trip. A watcher whose wake-up
// was lost is woken then, and a board that boardd alone is said to write is checked for
// changes by other programs. What a trip costs Redis is mostly the trip.
type rounds struct {
	store *Store
	kick  chan struct{} // a board is new; holds one

	mu      sync.Mutex
	boards  map[*board]*lookedAt
	fresh   map[*board]*lookedAt // those of them that were never looked at
	running bool
}

// lookedAt is a board that is looked at, and how it was found.
type lookedAt struct {
	board   *board
	opening *opening
	at      [2]string
	past    int64 // posts of other programs that were over when it was first looked at
}

func newRounds(s *Store) *rounds {
	return &rounds{store: s, kick: make(chan struct{}, 1), boards: map[*board]*lookedAt{}, fresh: map[*board]*lookedAt{}}
}

// join has a board looked at from now on, soon for the first time, until it leaves.
func (r *rounds) join(b *board, st *opening) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &lookedAt{board: b, opening: st}
	r.boards[b], r.fresh[b] = l, l
	select {
	case r.kick <- struct{}{}:
	default:
	}
	if !r.running {
		r.running = true
		r.store.work.Go(r.run)
	}
}

func (r *rounds) leave(b *board) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.boards, b)
	delete(r.fresh, b)
}

// run makes rounds until no board is left, or the store is closed.
func (r *rounds) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-r.store.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		if r.over() {
			return
		}
		all := r.list(r.boards)
		if len(all) == 0 {
			continue
		}
		whole := min(max(time.Duration(len(all))*roundEach, roundTime), roundRest)
		trips := slices.Collect(slices.Chunk(all, roundSize))
		for _, trip := range trips {
			r.look(ctx, trip)
			r.rest(ctx, spread(whole/time.Duration(len(trips))))
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// over reports whether no board is left. A board that joins after that begins new rounds.
func (r *rounds) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = len(r.boards) > 0
	return !r.running
}

// list returns the boards that are looked at: all of them, or those that never were.
func (r *rounds) list(of map[*board]*lookedAt) []*lookedAt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(of))
}

// looked notes that a board was looked at, and reports whether that was the first time.
func (r *rounds) looked(l *lookedAt) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if first = r.fresh[l.board] == l; first {
		delete(r.fresh, l.board)
	}
	return first
}

// rest waits, and looks meanwhile at boards that are new.
func (r *rounds) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-r.kick:
			for trip := range slices.Chunk(r.list(r.fresh), roundSize) {
				r.look(ctx, trip)
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// look looks at some boards in one trip. Those that could not be read are looked at the next
// time.
func (r *rounds) look(ctx context.Context, list []*lookedAt) {
	reads := make([]countReads, len(list))
	_, err := r.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, l := range list {
			reads[i] = readCounts(ctx, p, &l.opening.keys)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		r.store.logger.Debug("not every board can be looked at", "error", err)
	}
	for i, l := range list {
		if reads[i].err() == nil {
			l.found(ctx, &reads[i])
		}
	}
}

// found takes note of how a board was found.
func (l *lookedAt) found(ctx context.Context, reads *countReads) {
	b, st := l.board, l.opening
	if at := reads.at(); at != l.at {
		l.at = at
		b.store.wakes.wake(st.keys.wake)
	}
	first := b.store.rounds.looked(l)
	t := reads.count()
	if st.foreign || b.others.write() || !t.others(l.past) {
		return
	}
	// What was read was not read in one moment: another look is.
	t, err := newSweep(b, st).count(ctx)
	if err != nil {
		return
	}
	if first {
		l.past = max(t.unreconciled(), 0)
	}
	if t.others(l.past) {
		b.others.find(b, t.difference())
	}
}
