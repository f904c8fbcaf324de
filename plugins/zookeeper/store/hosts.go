package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/boardd/boardd/plugins/zookeeper/session"
)

// hosts are the drivers that have the board open, each by a node that ends with
// its session. They share the work that one of them has to do.
type hosts struct {
	self    atomic.Pointer[string] // nil: not joined yet
	session int64                  // that self's node ends with
	list    atomic.Pointer[[]string]
	event   atomic.Pointer[<-chan session.Event]
	dirty   atomic.Bool
}

func (h *hosts) changed() <-chan session.Event {
	if event := h.event.Load(); event != nil {
		return *event
	}
	return nil
}

// join makes this driver known to the others, once in a session: a node of before
// would stand for a host that does nothing.
func (b *board) join(ctx context.Context) error {
	b.mu.Lock()
	observe := b.spec.Observe
	b.mu.Unlock()
	if now := b.client().SessionID(); b.hosts.self.Load() == nil || now != b.hosts.session {
		var id [8]byte
		_, _ = rand.Read(id[:]) // never fails
		self := hex.EncodeToString(id[:])
		b.hosts.self.Store(&self)
		b.hosts.session = now
	}
	b.hosts.list.Store(&[]string{*b.hosts.self.Load()})
	if observe {
		return nil
	}
	m := b.client().Multi(b.acl)
	m.Create(b.at.hosts()+"/"+*b.hosts.self.Load(), nil, session.Ephemeral)
	if _, err := m.Do(ctx); err != nil && !errors.Is(err, session.ErrNodeExists) {
		return err
	}
	if err := b.touch(ctx); err != nil { // to know the leader's clock before records are read
		return err
	}
	return b.meet(ctx)
}

// meet reads who else has the board open.
func (b *board) meet(ctx context.Context) error {
	b.hosts.dirty.Store(false)
	folder, err := b.client().ListWatched(ctx, b.at.hosts())
	if err != nil {
		return err
	}
	b.hosts.event.Store(&folder.Event)
	b.hosts.list.Store(&folder.Names)
	return nil
}

// rank says how many other hosts go before this one in doing what has to be done
// about a subject. Each host finds the same order, and another one for another
// subject.
func (h *hosts) rank(subject string) int {
	self := *h.self.Load()
	mine, n := weigh(self, subject), 0
	for _, host := range *h.list.Load() {
		if host != self && weigh(host, subject) > mine {
			n++
		}
	}
	return n
}

func (h *hosts) first(subject string) bool { return h.rank(subject) == 0 }

func weigh(host, subject string) uint64 {
	f := fnv.New64a()
	_, _ = f.Write([]byte(host)) // never fails
	_, _ = f.Write([]byte(subject))
	// The last bytes of what fnv hashes hardly reach its upper bits.
	n := f.Sum64()
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	return n ^ n>>33
}

// alone reports whether no other host has the board open.
func (h *hosts) alone() bool {
	list := *h.list.Load()
	return len(list) == 0 || slices.Equal(list, []string{*h.self.Load()})
}
