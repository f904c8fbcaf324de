package store

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/driver"
)

// watchCount is how many entries of the stream are fetched at once.
const watchCount = 64

// A watcher looks though nobody woke it: what is published may get lost. Where Redis says
// that it tells of the board's changes, it looks rarely: when its connection is made anew,
// and when a round finds that the board was changed, it is woken.
const (
	watchTime = time.Second
	watchRest = 10 * time.Minute
)

// Watch streams what changed after a position.
func (s *Store) Watch(ctx context.Context, name string, after driver.Position) iter.Seq2[driver.Changes, error] {
	return func(yield func(driver.Changes, error) bool) {
		b, err := s.board(name)
		if err == nil {
			err = ended(ctx)
		}
		if err == nil {
			err = b.follow(ctx, after, func(c driver.Changes) bool { return yield(c, nil) })
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(driver.Changes{}, err)
		}
	}
}

// A tail is where a watch has got to.
type tail struct {
	board    *board
	opening  *opening
	position uint64
	yield    func(driver.Changes) bool
}

func (b *board) follow(ctx context.Context, after driver.Position, yield func(driver.Changes) bool) error {
	st := b.opening.Load()
	if st.spec.Observe {
		return b.observe(ctx, st, after, yield)
	}
	woken, stop := b.store.wakes.watch(st.keys.wake, "")
	defer stop()
	defer b.startSweep(st)()
	t := &tail{board: b, opening: st, position: uint64(after), yield: yield}
	for {
		if err := t.catchUp(ctx); err != nil {
			return err
		}
		rest := watchTime
		if b.store.tells(st.keys.wake) {
			rest = watchRest
		}
		if err := b.wait(ctx, st, woken, spread(rest)); err != nil {
			return err
		}
	}
}

// tells reports whether what is published on a channel comes here as long as the connection
// lasts. In a cluster it comes by way of other servers, whose connections nobody here sees.
func (s *Store) tells(channel string) bool {
	_, cluster := s.client.(*redis.ClusterClient)
	return !cluster && s.wakes.hears(channel)
}

// spread makes a time up to a quarter shorter, so that what began together does
// not go on together.
func spread(d time.Duration) time.Duration { return d - rand.N(d/4) }

// wait returns nil when it is time to look again.
func (b *board) wait(ctx context.Context, st *opening, woken <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-woken:
	case <-timer.C:
	case <-ctx.Done():
	case <-st.stale:
		return lookAgain(b.name)
	case <-b.dropped:
		return notOpen(b.name)
	case <-b.store.closing:
		return closed()
	}
	return ended(ctx)
}

// catchUp reports all that came since.
func (t *tail) catchUp(ctx context.Context) error {
	for {
		if more, err := t.step(ctx); err != nil || !more {
			return err
		}
	}
}

// step reports what came since, and whether there may be more.
func (t *tail) step(ctx context.Context) (bool, error) {
	b, k := t.board, &t.opening.keys
	h, err := b.readHead(ctx, k)
	if err != nil {
		return false, err
	}
	if h.generation != t.opening.generation {
		t.opening.expire()
		return false, lookAgain(b.name)
	}
	if h.position == t.position {
		return false, nil
	}
	if h.position < t.position || h.position-t.position > t.opening.events {
		return false, t.resync(h.position)
	}
	from := strconv.FormatUint(t.position+1, 10) + "-0"
	messages, err := b.store.client.XRangeN(ctx, k.events, from, "+", watchCount).Result()
	if err != nil {
		return false, readFailed(ctx, err)
	}
	if len(messages) == 0 {
		return false, t.resync(h.position) // they are not remembered any more
	}
	for i := range messages {
		e, err := decodeEntry(&messages[i])
		if err != nil || e.first > t.position+1 {
			return true, t.resync(h.position)
		}
		if err := t.report(ctx, &e); err != nil {
			return false, err
		}
	}
	return len(messages) == watchCount, nil
}

func (t *tail) resync(position uint64) error {
	t.position = position
	if !t.yield(driver.Changes{Position: driver.Position(position), Resync: true}) {
		return errStopped
	}
	return nil
}

func (t *tail) report(ctx context.Context, e *entry) error {
	events := e.events
	for len(events) > 0 && events[0].position <= t.position {
		events = events[1:]
	}
	if e.last <= t.position {
		return nil
	}
	list := make([]driver.Change, len(events))
	for i := range events {
		list[i] = events[i].change()
	}
	if err := t.board.complete(ctx, t.opening, events, list); err != nil {
		return err
	}
	if s := t.board.searching.Load(); s != nil {
		s.known.follow(events)
		s.notices.follow(events)
	}
	t.board.others.met(t.board, t.opening, events)
	t.position = e.last
	if n := len(e.events); n > 0 && !t.board.saw(t.opening, mark{position: e.last, at: e.events[n-1].at}) {
		return lookAgain(t.board.name)
	}
	if !t.yield(driver.Changes{List: list, Position: driver.Position(e.last)}) {
		return errStopped
	}
	return nil
}
