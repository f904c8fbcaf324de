package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// facts are what is known of a job when an op comes. fresh says that the job was read
// since.
func (v *view) facts(at instant, fresh bool) transition.Facts {
	f := transition.FactsOf(v.show(at, 0), at.wall)
	f.Generation, f.Leaseless, f.Cached = at.generation, true, !fresh
	if v.rec != nil && v.rec.end != nil {
		f.EndedBy = v.rec.end.token
	}
	return f
}

// decide asks what an op on one job does, or why it is refused.
func (b *board) decide(op *driver.Op, v *view, at instant, fresh bool) (transition.Plan, driver.Result) {
	f := v.facts(at, fresh)
	f.Stamp = v.stamp(op, at)
	if rest := b.early(v, at); op.Precondition == driver.Lapsed && rest > 0 {
		f.Holder.Remaining = rest
	}
	return transition.Decide(op, &f)
}

// early returns how long it is until this host may end the claim of v because its lease
// ran out. Of several hosts that have waited for it, one ends the claim, and each other
// one a little later than the one before: so they do not all ask ZooKeeper about it at
// once.
func (b *board) early(v *view, at instant) time.Duration {
	c := v.claim()
	if c == nil || v.live(at) || b.hosts.alone() || c.token.Generation != at.generation {
		return v.left(at)
	}
	return min(v.left(at)+b.hosts.grace(v.id.String()), c.lease)
}

// extendedSince looks once at the record of a claim whose lease seems to have run
// out, and refuses to end it if another host has extended it: of that nobody is
// told, and it is by far the most frequent case.
func (b *board) extendedSince(ctx context.Context, op *driver.Op) *driver.Result {
	v := b.known(op.Job)
	if op.Precondition != driver.Lapsed || v == nil || v.claim() == nil || v.claim().token != op.Token || b.hosts.alone() {
		return nil
	}
	at := b.now()
	switch early := b.early(v, at) > 0; {
	case v.live(at) && v.left(at) > v.claim().lease/100:
		return nil // it is early, which is found out like anything else
	case early: // in a moment, or another host goes first
		return b.refused(op, v, at)
	}
	next := *v
	if err := b.fetchRecord(ctx, &next, v); err != nil || next.rec == nil || next.recZxid == v.recZxid {
		return nil
	}
	if c := next.claim(); c == nil || c.token != op.Token {
		return nil
	}
	return b.refused(op, b.learn(v, &next), b.now())
}

// refused returns a refusal if the lease has not run out, else nil.
func (b *board) refused(op *driver.Op, v *view, at instant) *driver.Result {
	if _, r := b.decide(op, v, at, true); r.Kind == job.Precondition {
		return &r
	}
	return nil
}

// changeOf returns the change that a plan asks for; or, of more attached records than a
// job may have, why it is refused. Op says what watchers are told.
func (b *board) changeOf(op *driver.Op, plan *transition.Plan, v *view, at instant) (*change, *driver.Result) {
	ch := &change{op: op, rec: v.rec.clone(), within: plan.Within, rates: plan.Rates, keys: op.Keys, event: op.Event, reason: op.Reason, who: v.owner(), changed: true}
	if plan.Do == driver.Post {
		ch.begin(op, v)
	}
	if r := ch.write(plan); r != nil {
		return nil, r
	}
	if plan.State != job.Claimed {
		ch.rec.claim = nil // also one that ended without a word, see broken
	}
	switch plan.Do {
	case driver.Claim:
		b.grant(plan, ch)
	case driver.Extend:
		c := ch.rec.claim
		c.lease, c.noExpiry = plan.Holder.Remaining, plan.Holder.NoExpiry
		ch.changed, ch.quiet = false, true
		ch.rec.position, ch.rec.changedAt = 0, 0 // it is no change of the version
	case driver.Remove:
		ch.end(plan, v, at)
	case driver.Trash:
		v.carry(ch.rec)
		ch.takeNode, ch.lock = true, takeLock
		ch.rec.place, ch.rec.end, ch.rec.exact.ended = inTrash, nil, 0
	case driver.Restore:
		ch.outTrash, ch.rec.trash = v.rec.trash, ""
		ch.rec.place, ch.rec.end, ch.rec.exact.ended = onBoard, nil, 0
		ch.holdOrFree(at)
	case driver.Purge:
		ch.outTrash = v.rec.trash
		ch.dropAttached(v)
		ch.rec = &record{place: purged, stamps: ch.rec.stamps}
	case driver.Update:
		switch {
		case !v.held():
			ch.holdOrFree(at)
		case v.claim() != nil && !ch.rec.claim.noExpiry: // it counts from the record's last write
			ch.rec.claim.lease = max(v.left(at), 0)
		}
	default: // Post, Release
		ch.holdOrFree(at)
	}
	ch.rec.remember(&plan.Stamp, at)
	return ch, nil
}

// begin makes the record of a job that is posted.
func (ch *change) begin(op *driver.Op, v *view) {
	ch.rec = &record{posted: true, digest: op.Posting.Digest, extra: op.Posting.Extra, limits: transition.Moves(nil).Limits(op.Limits, 1), group: op.Group}
	ch.group, ch.emptied = op.Group, op.Emptied
	if v.rec != nil {
		ch.drop = v.rec.attached
		if v.rec.place == purged {
			ch.rec.stamps = v.rec.stamps
		}
	}
}

// grant writes the claim, and the lock by which TaskFlow knows it.
func (b *board) grant(plan *transition.Plan, ch *change) {
	b.mu.Lock()
	ch.short = b.settings.Claims == claimsSession
	b.mu.Unlock()
	h := &plan.Holder
	ch.lock, ch.owner, ch.who = putLock, h.Owner, h.Owner
	ch.rec.claim = &claim{
		owner: h.Owner, token: h.Token, lease: h.Remaining, noExpiry: h.NoExpiry, session: ch.short,
		limits: transition.Moves(nil).Limits(plan.Within, 1),
	}
}

// holdOrFree plans the lock of a job that nobody holds.
func (ch *change) holdOrFree(at instant) {
	if ch.rec.holdAlways || at.millis() < ch.rec.holdUntil {
		ch.lock, ch.owner = putLock, holdOwner
		return
	}
	ch.lock = takeLock
}

// write changes what a plan may change of any job.
func (ch *change) write(plan *transition.Plan) *driver.Result {
	r := ch.rec
	if plan.Status != nil {
		r.status = *plan.Status
	}
	names := slices.Clone(r.attached)
	for _, a := range plan.Attach {
		i, known := slices.BinarySearch(names, a.Name)
		switch {
		case a.Delete && known:
			names = slices.Delete(names, i, i+1)
		case a.Delete:
			continue
		case !known:
			names = slices.Insert(names, i, a.Name)
		}
		ch.attach = append(ch.attach, a)
	}
	if len(names) > MaxAttachments {
		return &driver.Result{Kind: job.Invalid, Message: fmt.Sprintf("the job would have %d attached records: want at most %d", len(names), MaxAttachments)}
	}
	r.attached = names
	r.holdAlways, r.holdUntil = plan.Held, millis(plan.NotBefore)
	return nil
}

// end takes the job off the board for good.
func (ch *change) end(plan *transition.Plan, v *view, at instant) {
	v.carry(ch.rec)
	ch.takeNode, ch.lock = true, takeLock
	ch.over(plan, v, at)
}

// over writes that the job has ended.
func (ch *change) over(plan *transition.Plan, v *view, at instant) {
	r, e := ch.rec, &plan.Ending
	r.place, r.limits, r.group, r.exact.ended = ended, nil, "", 0
	r.end = &ending{outcome: e.Outcome, token: plan.EndedBy, stamped: true}
	if e.Keep > 0 {
		r.end.until, r.end.data, r.end.kept = at.wall.Add(e.Keep).UnixMilli(), e.Data, e.KeepPosting
	} else {
		r.status = nil
	}
	if !e.KeepPosting {
		r.extra = nil
	}
	if !e.KeepAttached {
		ch.dropAttached(v)
	}
}

// dropAttached takes all attached records away.
func (ch *change) dropAttached(v *view) {
	ch.attach, ch.drop, ch.rec.attached = nil, nil, nil
	if v.rec != nil {
		ch.drop = v.rec.attached
	}
}
