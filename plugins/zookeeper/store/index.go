package store

import (
	"github.com/boardd/boardd/sdk/job"
)

// A tally counts jobs by where they stand.
type tally struct {
	open, claimed, trashed, ended, gone int64 // gone: purged, and remembered
}

func (t *tally) count(v *view, sign int64) {
	switch {
	case v == nil:
	case v.rec != nil && v.rec.place == purged:
		t.gone += sign
	case v.rec != nil && v.rec.place == inTrash:
		t.trashed += sign
	case v.onBoard():
		t.open += sign
		if v.held() {
			t.claimed += sign
		}
	case v.rec != nil:
		t.ended += sign
	}
}

// put makes v what is known of its job. b.mu is held.
func (b *board) put(v *view) {
	old := b.jobs[v.id]
	b.seen.saw(v)
	b.tally.count(old, -1)
	b.tally.count(v, 1)
	b.counted(old, -1)
	b.counted(v, 1)
	if old != nil && old.node != "" && old.node != v.node && b.names[old.node] == v.id {
		delete(b.names, old.node)
	}
	if v.node != "" {
		b.names[v.node] = v.id
	}
	if v.rec == nil && v.node == "" {
		delete(b.jobs, v.id)
		b.past.note(v, b.instant())
		return
	}
	b.jobs[v.id] = v.thin()
	b.past.note(b.jobs[v.id], b.instant())
	b.holds.add(v)
	if v.broken() {
		b.past.broken = append(b.past.broken, v.id)
		b.wake()
	}
	if v.gone() && b.loadedOnce {
		b.past.vanished = append(b.past.vanished, v.id)
		b.wake()
	}
}

// A sign is what everybody can see of a job that another program changes
// without a trace in boardd's record.
type sign struct {
	node  string
	state job.State
	claim uint64 // the lock of another program's claim
	token job.Token
}

func (v *view) sign(at instant) sign {
	s := sign{node: v.node, state: v.state(at)}
	if l := v.stranger(); l != nil {
		s.claim = l.czxid
	}
	if c := v.claim(); c != nil {
		s.token = c.token
	}
	return s
}

// learn takes note of what was read of a job, of which old was known before, and
// tells watchers where another program changed it. What other hosts of boardd
// do, they are told by the log.
func (b *board) learn(old, v *view) *view {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.instant()
	now := b.jobs[v.id]
	if now != old && now != nil && now.recZxid >= v.recZxid {
		b.folder.dirty = true // the lock may be other news than what is known now
		if now.slim && now.recZxid == v.recZxid {
			return v // the same, and whole
		}
		return now
	}
	if old == nil && v.rec == nil && v.node == "" {
		return v
	}
	if !b.loadedOnce {
		b.put(v)
		return v
	}
	if b.root.passage.Gone { // what is done in TaskFlow's folders is not about the board any more
		b.put(v)
		b.advance()
		return v
	}
	var before sign
	if old != nil {
		before = old.sign(at)
	}
	after := v.sign(at)
	byUs := v.rec != nil && (old == nil || old.recZxid != v.recZxid)
	unlogged := byUs && old != nil && old.rec != nil && old.rec.version == v.rec.version
	switch {
	case unlogged && before == after:
		b.put(v)
		b.emit(job.Extended, v.show(at, 0), v.rec.position, v.rec.changedAt, "", v.owner())
	case byUs && after.claim == 0 && (!unlogged || before.state == job.Unknown):
		b.put(v) // where it is unlogged, another host wrote down first what another program did
	case before == after:
		b.put(v)
		return v
	case v.node == "" && b.rootFired(): // a board that has gone takes its jobs away: that is to be known first
		b.folder.dirty = true
		return v
	default:
		b.strange(old, v, at)
	}
	b.advance()
	return v
}

// strange takes note of a change by another program. b.mu is held.
func (b *board) strange(old, v *view, at instant) {
	b.meetOthers(v)
	owner := v.owner()
	if old != nil {
		v.foreign = max(b.horizon, old.position()+1, b.events.told+1)
		v.foreignAt = at.millis()
		if owner == "" {
			owner = old.owner()
		}
	}
	if v.foreign > b.horizon {
		b.folder.dirty = true // its stat says how far the store is
	}
	b.put(v)
	b.emit(job.ForeignChange, v.show(at, 0), v.position(), v.changedAt(), "", owner)
	if v.rec == nil && v.node == "" && old != nil {
		// Nothing is left that could be read: the last word is that it ended.
		last := &b.events.waiting[len(b.events.waiting)-1]
		r := old.show(at, 0)
		r.State, r.Holder, r.Outcome, r.EndedAt = job.Complete, nil, job.Consumed, atMillis(v.foreignAt)
		r.Position, r.Version = last.Position, uint64(last.Position)
		last.Record = r
	}
}
