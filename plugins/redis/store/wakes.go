package store

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// wakes tells watchers that something was published on their channel, and boards which of
// their jobs Redis has named. All share one connection, which is made for the first of
// them, and two patterns, whatever the number of boards: Redis compares whatever is
// published with every pattern that anybody has.
type wakes struct {
	store *Store
	ctx   context.Context //nolint:containedctx // ends with the store, not with a call
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu       sync.Mutex // held while Redis is told what to listen to
	pubsub   *redis.PubSub
	channels map[string]*channel
	space    string                       // begins the channels of notifications
	notices  map[string]map[*notices]bool // of boards, by what their keys begin with
	named    map[string]bool              // the patterns of notifications that Redis has taken
}

// A channel is one that somebody waits for.
type channel struct {
	woken map[string]map[chan struct{}]bool // by the one message that wakes them, or "" for any
	heard bool                              // Redis has said that it tells of it
}

func newWakes(s *Store) *wakes {
	w := &wakes{store: s, channels: map[string]*channel{}, notices: map[string]map[*notices]bool{}, named: map[string]bool{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// watch returns a channel on which something comes after each message, and what
// ends that. Messages that come at once may be one. Something comes as well whenever Redis
// begins to tell of the channel, since what was published before that is lost. Who waits
// for one message of many, and not for "", which is any, is woken by that alone and by those
// for which nobody can wait (see whom).
func (w *wakes) watch(name, message string) (<-chan struct{}, func()) {
	woken := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return woken, func() {}
	}
	w.connect()
	if w.channels[name] == nil {
		w.channels[name] = &channel{woken: map[string]map[chan struct{}]bool{}}
		w.say(w.pubsub.Subscribe, name)
	}
	if w.channels[name].woken[message] == nil {
		w.channels[name].woken[message] = map[chan struct{}]bool{}
	}
	w.channels[name].woken[message][woken] = true
	return woken, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		c := w.channels[name]
		if delete(c.woken[message], woken); len(c.woken[message]) == 0 {
			delete(c.woken, message)
		}
		if len(c.woken) == 0 && w.ctx.Err() == nil {
			delete(w.channels, name)
			w.say(w.pubsub.Unsubscribe, name)
		}
	}
}

// hears reports whether Redis tells of a channel: a proxy may not, or an ACL.
func (w *wakes) hears(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.channels[name]
	return c != nil && c.heard
}

// listen has the jobs of a board noted in n whenever Redis names one, until what it
// returns is called. The notices are on as soon as Redis has taken the patterns.
func (w *wakes) listen(db string, prefix string, n *notices) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return func() {}
	}
	w.connect()
	if len(w.notices) == 0 {
		w.space = "__keyspace@" + db + "__:"
		w.say(w.pubsub.PSubscribe, w.patterns()...)
	}
	if w.notices[prefix] == nil {
		w.notices[prefix] = map[*notices]bool{}
	}
	w.notices[prefix][n] = true
	if w.namesAll() {
		n.begin()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.notices[prefix], n)
		if len(w.notices[prefix]) == 0 {
			delete(w.notices, prefix)
		}
		if len(w.notices) == 0 && w.ctx.Err() == nil {
			clear(w.named)
			w.say(w.pubsub.PUnsubscribe, w.patterns()...)
		}
	}
}

// patterns are those of the notifications of all boards. w.mu is held.
func (w *wakes) patterns() []string {
	return []string{w.space + "*" + ownedSuffix, w.space + "*" + modifiedSuffix}
}

// namesAll reports whether Redis has taken all the patterns. w.mu is held.
func (w *wakes) namesAll() bool { return len(w.named) == len(w.patterns()) }

// say changes what the connection listens to. It is told again with each new
// connection, so that an error now is none: watchers look by themselves as well. The
// caller holds w.mu.
func (w *wakes) say(what func(context.Context, ...string) error, channels ...string) {
	if err := what(w.ctx, channels...); err != nil {
		w.store.logger.Debug("Redis is not listened to", "channels", channels, "error", err)
	}
}

// connect makes the connection, unless there is one. The caller holds w.mu.
func (w *wakes) connect() {
	if w.pubsub != nil {
		return
	}
	w.pubsub = w.store.client.Subscribe(w.ctx)
	messages := w.pubsub.ChannelWithSubscriptions(redis.WithChannelSize(1024))
	w.done.Go(func() {
		for m := range messages {
			switch m := m.(type) {
			case *redis.Subscription:
				w.begun(m)
			case *redis.Message:
				w.tell(m)
			}
		}
	})
}

// begun notes that Redis tells of a channel or a pattern from now on: for the first time,
// or over a new connection, before which something may have been told to nobody.
func (w *wakes) begun(s *redis.Subscription) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch s.Kind {
	case "subscribe":
		if c := w.channels[s.Channel]; c != nil {
			c.heard = true
			c.wake("")
		}
	case "psubscribe":
		if len(w.notices) == 0 {
			return // nobody listens any more
		}
		w.named[s.Channel] = true
		for _, of := range w.notices {
			for n := range of {
				if w.namesAll() {
					n.begin()
				}
			}
		}
	}
}

// wake has everybody who waits for a channel look.
func (w *wakes) wake(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.channels[name]; c != nil {
		c.wake("")
	}
}

// wake has those look who wait for a message, or everybody with "".
func (c *channel) wake(message string) {
	if message == "" {
		for _, waiting := range c.woken {
			wakeAll(waiting)
		}
		return
	}
	wakeAll(c.woken[message])
	wakeAll(c.woken[""])
}

func wakeAll(waiting map[chan struct{}]bool) {
	for woken := range waiting {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// whom returns the message of those whom a published one is for, or "" for everybody: a change
// of documents names their space, unless a program of before that has made it.
func whom(m *redis.Message) string {
	if m.Channel == documentsWake && strings.HasPrefix(m.Payload, documentsPrefix) {
		return m.Payload
	}
	return ""
}

func (w *wakes) tell(m *redis.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.Pattern == "" {
		if c := w.channels[m.Channel]; c != nil {
			c.wake(whom(m))
		}
		return
	}
	key := strings.TrimPrefix(m.Channel, w.space)
	if prefix, id, ok := ownerOf(key); ok {
		for n := range w.notices[prefix] {
			n.add(id)
		}
	}
}

func (w *wakes) close() {
	w.stop()
	w.mu.Lock()
	pubsub := w.pubsub
	w.mu.Unlock()
	if pubsub != nil {
		_ = pubsub.Close() // nothing is left to be told
	}
	w.done.Wait()
}
