package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"hash/fnv"
	"slices"
	"sync/atomic"

	"github.com/boardd/boardd/plugins/zookeeper/session"
)

// hosts are the drivers that have the board open, each by a node that ends with
// its session. They share the work that one of them has to do.
type hosts struct {
	self  string
	list  atomic.Pointer[[]string]
	event atomic.Pointer[<-chan session.Event]
	dirty atomic.Bool
}

func (h *hosts) changed() <-chan session.Event {
	if event := h.event.Load(); event != nil {
		return *event
	}
	return nil
}

// join makes this driver known to the others.
func (b *board) join(ctx context.Context) error {
	b.mu.Lock()
	observe := b.spec.Observe
	b.mu.Unlock()
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	b.hosts.self = hex.EncodeToString(id[:])
	b.hosts.list.Store(&[]string{b.hosts.self})
	if observe {
		return nil
	}
	m := b.client().Multi(b.acl)
	m.Create(b.at.hosts()+"/"+b.hosts.self, nil, session.Ephemeral)
	if _, err := m.Do(ctx); err != nil {
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
	mine, n := weigh(h.self, subject), 0
	for _, host := range *h.list.Load() {
		if host != h.self && weigh(host, subject) > mine {
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
	return len(list) == 0 || slices.Equal(list, []string{h.self})
}
