package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	invalidated = "__redis__:invalidate" // the channel on which Redis names keys that are tracked
	trackTime   = 5 * time.Second        // for the first answer
	trackLess   = 4                      // tracking ends when the search for claims takes this part of the time that began it
)

// adjust has the board's keys tracked while the search for claims takes, or will take, so
// long that they are not seen in time: no more often, since Redis then names the keys of our
// own changes as well.
func (s *sweep) adjust(ctx context.Context) {
	switch n, took := s.notices, max(s.took, s.least); {
	case n.without.Load():
	case !n.on() && took > slowTime && time.Since(n.failed) > sweepRest:
		s.board.store.track(ctx, &s.opening.keys, n)
	case n.on() && took < slowTime/trackLess:
		n.enabled.Store(false)
		n.stop()
		n.stop = func() {}
	}
}

// track has Redis name the keys of one board that change, as it does for clients that keep
// copies of them: that needs no setting of the server. A connection of its own asks for it
// each time that it is made, and has the names sent to itself. A server that refuses, or a
// proxy, is not asked again while the search goes on. Without a namespace Redis would name
// the keys of everybody, and in a cluster each server only its own, so neither is asked.
func (s *Store) track(ctx context.Context, k *keys, n *notices) {
	single, ok := s.client.(*redis.Client)
	if !ok || k.prefix == "" {
		n.without.Store(true)
		return
	}
	o := *single.Options()
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns = 1, 0, 0
	greet := o.OnConnect
	var pubsub *redis.PubSub
	o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		if greet != nil {
			if err := greet(ctx, c); err != nil {
				return err
			}
		}
		err := trackHere(ctx, c, k.prefix)
		if s.refuses(n, err) && n.enabled.CompareAndSwap(true, false) {
			go func() { _ = pubsub.Close() }() // this is called by what it would wait for
		}
		return err
	}
	client := redis.NewClient(&o)
	pubsub = client.Subscribe(ctx, invalidated)
	if _, err := pubsub.ReceiveTimeout(ctx, trackTime); err != nil {
		_, _ = pubsub.Close(), client.Close() // it was of no use
		if !s.refuses(n, err) {
			n.failed = time.Now()
			s.logger.Debug("Redis does not track keys", "error", err)
		}
		return
	}
	n.hear(k, pubsub, func() { _, _ = pubsub.Close(), client.Close() }) // nothing is left to be told then
}

// hear has the keys that Redis names noted, until the notices are stopped, which calls end.
func (n *notices) hear(k *keys, pubsub *redis.PubSub, end func()) {
	n.enabled.Store(true)
	n.again()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range pubsub.ChannelWithSubscriptions(redis.WithChannelSize(1024)) {
			switch m := m.(type) {
			case *redis.Subscription: // over a new connection
				n.again()
			case *redis.Message:
				n.add(k, m.PayloadSlice...)
			}
		}
	}()
	n.stop = func() {
		end()
		<-done
	}
}

// refuses reports that the server will not track keys, where that is new.
func (s *Store) refuses(n *notices, err error) bool {
	if _, ok := errors.AsType[redis.Error](err); !ok || !n.without.CompareAndSwap(false, true) {
		return false
	}
	s.logger.Info("Redis does not track keys for boardd, which looks for other programs' changes by itself", "error", err)
	return true
}

// trackHere has the keys that begin with prefix tracked, and named to the connection itself.
func trackHere(ctx context.Context, c *redis.Conn, prefix string) error {
	id, err := c.ClientID(ctx).Result()
	if err != nil {
		return err
	}
	return c.Do(ctx, "client", "tracking", "on", "redirect", id, "bcast", "prefix", prefix).Err()
}
