package store

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// wakes tells watchers that something was published on their channel. All share
// one connection, which is made for the first of them.
type wakes struct {
	store *Store
	ctx   context.Context //nolint:containedctx // ends with the store, not with a call
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu       sync.Mutex // held while Redis is told what to listen to
	pubsub   *redis.PubSub
	channels map[string]map[chan struct{}]bool
	patterns map[string]map[*listener]bool
}

func newWakes(s *Store) *wakes {
	w := &wakes{store: s, channels: map[string]map[chan struct{}]bool{}, patterns: map[string]map[*listener]bool{}}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// watch returns a channel on which something comes after each message, and what
// ends that. Messages that come at once may be one.
func (w *wakes) watch(channel string) (<-chan struct{}, func()) {
	woken := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return woken, func() {}
	}
	w.connect()
	if w.channels[channel] == nil {
		w.channels[channel] = map[chan struct{}]bool{}
		w.say(w.pubsub.Subscribe, channel)
	}
	w.channels[channel][woken] = true
	return woken, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.channels[channel], woken)
		if len(w.channels[channel]) == 0 && w.ctx.Err() == nil {
			delete(w.channels, channel)
			w.say(w.pubsub.Unsubscribe, channel)
		}
	}
}

// A listener is called for each message on the channels that a pattern names.
type listener struct{ told func(channel, message string) }

// watchPattern has told called for each message on the channels that a pattern
// names, until it is ended.
func (w *wakes) watchPattern(pattern string, told func(channel, message string)) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return func() {}
	}
	w.connect()
	if w.patterns[pattern] == nil {
		w.patterns[pattern] = map[*listener]bool{}
		w.say(w.pubsub.PSubscribe, pattern)
	}
	l := &listener{told}
	w.patterns[pattern][l] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.patterns[pattern], l)
		if len(w.patterns[pattern]) == 0 && w.ctx.Err() == nil {
			delete(w.patterns, pattern)
			w.say(w.pubsub.PUnsubscribe, pattern)
		}
	}
}

// say changes what the connection listens to. It is told again with each new
// connection, so that an error now is none: watchers look by themselves as well. The
// caller holds w.mu.
func (w *wakes) say(what func(context.Context, ...string) error, channel string) {
	if err := what(w.ctx, channel); err != nil {
		w.store.logger.Debug("Redis is not listened to", "channel", channel, "error", err)
	}
}

// connect makes the connection, unless there is one. The caller holds w.mu.
func (w *wakes) connect() {
	if w.pubsub != nil {
		return
	}
	w.pubsub = w.store.client.Subscribe(w.ctx)
	messages := w.pubsub.Channel(redis.WithChannelSize(1024))
	w.done.Go(func() {
		for m := range messages {
			w.tell(m)
		}
	})
}

func (w *wakes) tell(m *redis.Message) {
	w.mu.Lock()
	listeners := slices.Collect(maps.Keys(w.patterns[m.Pattern]))
	for woken := range w.channels[m.Channel] {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
	w.mu.Unlock()
	for _, l := range listeners {
		l.told(m.Channel, m.Payload)
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
