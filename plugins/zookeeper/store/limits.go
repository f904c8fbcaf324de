package store

import (
	"context"
	"slices"
	"strings"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A limit's counter is a node, which the transaction of a post, a claim or
// whatever ends one changes together with the job, by its version. So it says
// what the records say, whoever dies when. What one job counts for stands in its
// record.

// A share is what one job, or its claim, counts for at a limit.
type share struct {
	key string
	n   int64
}

// sharesOf returns what limits count, each key once, in the order of the keys.
func sharesOf(limits []driver.Limit) []share {
	var list []share
	for _, l := range limits {
		list = addShare(list, l.Key, max(l.Weight, 1)) // a weight of 0 counts as 1
	}
	return list
}

func addShare(list []share, key string, n int64) []share {
	i, there := slices.BinarySearchFunc(list, key, func(s share, key string) int { return strings.Compare(s.key, key) })
	if !there {
		list = slices.Insert(list, i, share{key: key})
	}
	list[i].n += n
	return list
}

// shares calls add for each share that counts as the record stands: those of the
// posting while it is on the board, and those of the claim until it is written
// that it has ended.
func (r *record) shares(add func(key string, n int64)) {
	if r == nil || r.place != onBoard {
		return
	}
	for _, s := range r.limits {
		add(s.key, s.n)
	}
	if r.claim != nil {
		for _, s := range r.claim.limits {
			add(s.key, s.n)
		}
	}
}

// moves returns by how much a change moves which counters; also those that it
// does not move, and may not be above their limit.
func (ch *change) moves(old *record) []share {
	var list []share
	old.shares(func(key string, n int64) { list = addShare(list, key, -n) })
	ch.rec.shares(func(key string, n int64) { list = addShare(list, key, n) })
	return slices.DeleteFunc(list, func(s share) bool { return s.n == 0 && !ch.bound(s.key) })
}

func (ch *change) bound(key string) bool {
	return slices.ContainsFunc(ch.within, func(l driver.Limit) bool { return l.Key == key })
}

// exceeded returns an error that names a limit which the counters are above.
func (ch *change) exceeded(counters []*counter, moves []share) error {
	for _, l := range ch.within {
		for i := range moves {
			if moves[i].key == l.Key && counters[i].value+moves[i].n > l.Max {
				return &job.Error{Kind: job.QuotaExceeded, Message: l.Key}
			}
		}
	}
	return nil
}

// counted adds what a job counts for to what is known of the board, or with sign
// -1 takes it away. b.mu is held.
func (b *board) counted(v *view, sign int64) {
	if v == nil {
		return
	}
	v.rec.shares(func(key string, n int64) {
		if b.limits[key] += sign * n; b.limits[key] == 0 {
			delete(b.limits, key)
		}
	})
}

// broken reports whether a claim that counts has ended without a word in the
// record: another program has taken its lock away, or its session is gone.
func (v *view) broken() bool {
	return v.onBoard() && !v.ours() && v.rec != nil && v.rec.claim != nil && v.rec.claim.limits != nil
}

// mendBroken writes down that claims have ended, so that they count no longer.
func (b *board) mendBroken(ctx context.Context) error {
	b.mu.Lock()
	ids := b.past.broken
	b.past.broken = nil
	observe := b.spec.Observe
	b.mu.Unlock()
	if observe {
		return nil
	}
	for i, id := range ids {
		v, err := b.refresh(ctx, id, recorded)
		if err == nil && v.broken() {
			ch := &change{rec: v.rec.clone(), quiet: true, silent: true}
			ch.rec.claim = nil
			if _, _, err = b.commit(ctx, v, ch); session.Conflict(err) {
				_, err = b.refresh(ctx, id, recorded)
			}
		}
		if err != nil {
			b.mu.Lock()
			b.past.broken = append(b.past.broken, ids[i:]...)
			b.mu.Unlock()
			return err
		}
	}
	return nil
}
