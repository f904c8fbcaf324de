package store

import (
	"context"
	"slices"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// A limit's counter is a node, which the transaction of a post, a claim or
// whatever ends one changes together with the job, by its version. So it says
// what the records say, whoever dies when. What one job counts for stands in its
// record.

// shares calls add for each share that counts as the record stands: those of the
// posting while it is on the board, and those of the claim until it is written
// that it has ended.
func (r *record) shares(add func(key string, n int64)) {
	if r == nil || r.place != onBoard {
		return
	}
	for _, s := range r.limits {
		add(s.Key, s.By)
	}
	if r.claim != nil {
		for _, s := range r.claim.limits {
			add(s.Key, s.By)
		}
	}
}

// moves returns by how much a change moves which counters; also those that it
// does not move, and may not be above their limit.
func (ch *change) moves(old *record) transition.Moves {
	var list transition.Moves
	old.shares(func(key string, n int64) { list = list.Add(key, -n) })
	ch.rec.shares(func(key string, n int64) { list = list.Add(key, n) })
	return slices.DeleteFunc(list, func(m transition.Move) bool { return m.By == 0 && !ch.bound(m.Key) })
}

func (ch *change) bound(key string) bool {
	return slices.ContainsFunc(ch.within, func(l driver.Limit) bool { return l.Key == key })
}

// exceeded returns an error that names a limit which the counters would be above.
func (ch *change) exceeded(counters []*counter, moves transition.Moves) error {
	key := transition.Room(ch.within, moves, func(key string) int64 {
		for i := range moves {
			if moves[i].Key == key {
				return counters[i].value
			}
		}
		return 0
	})
	if key == "" {
		return nil
	}
	return &job.Error{Kind: job.QuotaExceeded, Message: key}
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
