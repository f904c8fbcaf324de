package store

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A counter is a limit's, a rate's or a group's node as it was last seen. Changes of one counter are
// made one after another on one host: side by side all but one would be refused.
type counter struct {
	turn  chan struct{} // holds one: whoever took it out may use what follows
	users int           // guarded by counters.mu

	known   bool
	there   bool
	value   int64
	until   time.Time // of a rate: the end of its period
	census  census    // of a group
	version int32
	readAt  time.Time
}

// counters are those of one board that somebody uses.
type counters struct {
	mu   sync.Mutex
	list map[string]*counter
}

// keepCounters is how many counters are remembered that nobody uses.
const keepCounters = 4096

// take waits for the turn of each counter, in the order of the keys, so that two
// changes do not wait for each other.
func (c *counters) take(ctx context.Context, moves transition.Moves) ([]*counter, error) {
	taken := make([]*counter, 0, len(moves))
	for _, s := range moves {
		c.mu.Lock()
		one := c.list[s.Key]
		if one == nil {
			one = &counter{turn: make(chan struct{}, 1)}
			one.turn <- struct{}{}
			c.list[s.Key] = one
		}
		one.users++
		c.mu.Unlock()
		select {
		case <-one.turn:
			taken = append(taken, one)
		case <-ctx.Done():
			c.leave(s.Key, one)
			c.give(taken, moves)
			return nil, &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
		}
	}
	return taken, nil
}

func (c *counters) give(taken []*counter, moves transition.Moves) {
	for i, one := range taken {
		one.turn <- struct{}{}
		c.leave(moves[i].Key, one)
	}
}

func (c *counters) leave(key string, one *counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.users--; one.users == 0 && len(c.list) > keepCounters {
		delete(c.list, key)
	}
}

// How long a counter is believed, and how long one stands at 0 before it may be
// taken away, which is looked for every counterPause. No change takes that long:
// so a node of the same version that was made since is never taken for the one
// that was read.
const (
	counterAge   = time.Minute
	counterIdle  = time.Hour
	counterPause = 10 * time.Minute
)

// read brings a counter up to date that is not known, from its node in a folder; decode takes
// its data, and those of none where there is no node.
func (b *board) read(ctx context.Context, c *counter, folder, path string, decode func(data []byte) error) error {
	if c.known && time.Since(c.readAt) < counterAge {
		return nil
	}
	begun := time.Now()
	node, err := b.client().Get(ctx, path)
	switch {
	case session.NoNode(err):
		b.mu.Lock()
		acl := b.acl
		b.mu.Unlock()
		if err := b.client().EnsurePath(ctx, folder, acl); err != nil {
			return err
		}
		c.there, c.value, c.until, c.census, c.version = false, 0, time.Time{}, census{}, 0
	case err != nil:
		return err
	default:
		if err := decode(node.Data); err != nil {
			return &job.Error{Kind: job.Corrupt, Message: path + " cannot be read", Err: err}
		}
		c.there, c.version = true, node.Stat.Version
	}
	c.known, c.readAt = true, begun
	return nil
}

// readCounter is read of a limit's counter.
func (b *board) readCounter(ctx context.Context, key string, c *counter) error {
	return b.read(ctx, c, b.at.limits(), b.at.limit(key), func(data []byte) error {
		value, n := binary.Varint(data)
		if n <= 0 || n != len(data) {
			return errors.New("it is no number")
		}
		c.value = value
		return nil
	})
}

// rereadAll reads counters whatever is known of them, and says whether one is another.
func (b *board) rereadAll(ctx context.Context, counters iter.Seq2[string, *counter], read func(ctx context.Context, key string, c *counter) error) (changed bool, err error) {
	if err := b.client().Sync(ctx, b.at.Board); err != nil {
		return false, err
	}
	for key, c := range counters {
		there, version := c.there, c.version
		c.known = false
		if err := read(ctx, key, c); err != nil {
			return false, err
		}
		changed = changed || there != c.there || version != c.version
	}
	return changed, nil
}

// reread is rereadAll of limits' counters.
func (b *board) reread(ctx context.Context, moves transition.Moves, taken []*counter) (bool, error) {
	return b.rereadAll(ctx, func(yield func(string, *counter) bool) {
		for i, c := range taken {
			if !yield(moves[i].Key, c) {
				return
			}
		}
	}, b.readCounter)
}

// count makes a change that moves counters, which do carries out, with what it
// calls add for. One that was refused since another host has moved a counter is
// tried with what that stands at now.
func (b *board) count(ctx context.Context, ch *change, moves transition.Moves, do func(add func(*session.Multi)) error) error {
	taken, err := b.counters.take(ctx, moves)
	if err != nil {
		return err
	}
	defer b.counters.give(taken, moves)
	for {
		for i, c := range taken {
			if err := b.readCounter(ctx, moves[i].Key, c); err != nil {
				return err
			}
		}
		if ch.exceeded(taken, moves) != nil { // as far as is known here
			if _, err := b.reread(ctx, moves, taken); err != nil {
				return err
			}
			if err := ch.exceeded(taken, moves); err != nil {
				return err
			}
		}
		err := do(func(m *session.Multi) { b.addCounters(m, moves, taken) })
		switch {
		case err == nil:
			for i, c := range taken {
				c.moved(moves[i].By)
			}
			return nil
		case !session.Conflict(err):
			for _, c := range taken {
				c.known = false // nobody knows whether it was moved
			}
			return err
		}
		if changed, again := b.reread(ctx, moves, taken); again != nil || !changed {
			return errors.Join(again, err) // it is the job that was changed
		}
	}
}

// addCounters adds the moves to a transaction. A counter that may not be above
// its limit is checked even where it is not moved.
func (b *board) addCounters(m *session.Multi, moves transition.Moves, taken []*counter) {
	for i, c := range taken {
		path, data := b.at.limit(moves[i].Key), binary.AppendVarint(nil, max(c.value+moves[i].By, 0))
		switch {
		case !c.there:
			m.Create(path, data, session.Persistent)
		case moves[i].By == 0:
			m.Check(path, c.version)
		default:
			m.Set(path, data, c.version)
		}
	}
}

// moved notes what addCounters has done.
func (c *counter) moved(n int64) {
	switch {
	case !c.there:
		c.there, c.version = true, 0
	case n != 0:
		c.version++
	}
	c.value = max(c.value+n, 0)
}

// tidyCounters does trimCounters where it is due, on one of the hosts, and looks for answers
// that nobody forgets.
func (b *board) tidyCounters(ctx context.Context) error {
	b.mu.Lock()
	due := time.Now().After(b.past.counters) && !b.spec.Observe && b.hosts.first(b.name)
	if due {
		b.past.counters = time.Now().Add(counterPause)
	}
	b.mu.Unlock()
	if !due {
		return nil
	}
	if err := b.listAnswers(ctx); err != nil { // of hosts that are gone
		return err
	}
	return b.trimCounters(ctx, counterIdle)
}

// trimCounters takes away what has stood at 0 for so long, by the server's clock, rates whose
// period ended as long ago, keys that no job has, and groups that count nothing.
func (b *board) trimCounters(ctx context.Context, idle time.Duration) error {
	err := b.trimNodes(ctx, b.at.limits(), func(node session.Node) bool {
		value, _ := binary.Varint(node.Data)
		return value == 0 && b.now().wall.Sub(atMillis(node.Stat.Mtime)) >= idle
	})
	if err != nil {
		return err
	}
	err = b.trimNodes(ctx, b.at.rates(), func(node session.Node) bool {
		e, err := decodeKey(node.Data)
		return err == nil && b.now().wall.Sub(e.Until) >= idle
	})
	if err != nil {
		return err
	}
	err = b.trimNodes(ctx, b.at.keys(), func(node session.Node) bool {
		return b.now().wall.Sub(atMillis(node.Stat.Mtime)) >= idle && b.freeKey(ctx, node.Data)
	})
	if err != nil {
		return err
	}
	return b.trimNodes(ctx, b.at.groups(), func(node session.Node) bool {
		c, err := decodeCensus(node.Data)
		return err == nil && c == census{} && b.now().wall.Sub(atMillis(node.Stat.Mtime)) >= idle
	})
}

// trimNodes takes those nodes of a folder away that nobody needs.
func (b *board) trimNodes(ctx context.Context, path string, idle func(session.Node) bool) error {
	folder, err := b.client().List(ctx, path)
	if session.NoNode(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range folder.Names {
		path := path + "/" + name
		node, err := b.client().Get(ctx, path)
		if err != nil && !session.NoNode(err) {
			return err
		}
		if err != nil || !idle(node) {
			continue
		}
		m := b.client().Multi(nil)
		m.Delete(path, node.Stat.Version)
		if _, err := m.Do(ctx); err != nil && !session.Conflict(err) {
			return err
		}
	}
	return nil
}
