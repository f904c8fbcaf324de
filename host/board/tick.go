package board

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// tickRecord says how far a schedule is.
type tickRecord struct {
	At      time.Time `json:"at,omitzero"` // of the last tick that was posted or left out
	Posted  time.Time `json:"posted,omitzero"`
	ID      job.ID    `json:"id"` // of the last job that was posted
	Problem string    `json:"problem,omitempty"`
}

// posted notes the job of a tick, unless that of a later one is there, or one that was triggered
// since the tick. A host that tried the same tick, or the one after it, a moment earlier or later
// may have written that it was left out: the job is nevertheless the last one.
func (r *tickRecord) posted(tick time.Time, id job.ID) {
	if !tick.Before(r.Posted) {
		r.Posted, r.ID = tick, id
	}
	if !tick.Before(r.At) {
		r.At, r.Problem = tick, ""
	}
}

// scheduleKey is the key that a schedule's ticks take.
func scheduleKey(name string) string { return schedulePrefix + name }

// tickDigest is of one tick, the same on every host.
func tickDigest(what, name string, tick time.Time) [32]byte {
	b := append([]byte(what), 0)
	b = append(append(b, name...), 0)
	return sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(tick.UnixMilli()))) //nolint:gosec // a digest takes any bits
}

// jitter is how late a tick is.
func jitter(name string, tick time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	sum := tickDigest("jitter", name, tick)
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(most))
}

// tickID is the uuid of a tick's job: of version 8 (RFC 9562), so that every host gives it the same.
func (b *Board) tickID(name string, tick time.Time) job.ID {
	sum := tickDigest("tick of "+b.spec.Key, name, tick)
	id := job.ID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

// HoldTicks has no tick of this host between the post of its job and the note of that, until release
// is called. A board is frozen in between: the store that it moves to knows no key of the old one,
// and would post a tick again that nobody noted. It waits for ticks until ctx ends, and no longer.
func (b *Board) HoldTicks(ctx context.Context) (release func()) {
	for !b.scheduler.ticking.TryLock() {
		if sleep.For(ctx, time.Millisecond) != nil { // nobody tells
			return func() {}
		}
	}
	return b.scheduler.ticking.Unlock
}

// tick posts the job of one tick, unless that was done, and returns whether that need not be
// tried again.
func (b *Board) tick(ctx context.Context, t *dueTick) (done bool) {
	if !b.scheduler.ticking.TryRLock() {
		return false // the board is being frozen
	}
	defer b.scheduler.ticking.RUnlock()
	name, id := t.of.name, b.tickID(t.of.name, t.at)
	again, by, err := b.tryTick(ctx, t, id)
	kind := job.KindOf(err)
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil && (by == (job.ID{}) || by == id):
		if !again && by != id { // else another host counts it
			b.metrics.Ticks.Add(1)
		}
		b.ticked(ctx, name, func(r *tickRecord) { r.posted(t.at, id) })
	case err == nil && t.record.Overlap == OverlapSkip && by != id:
		b.leftOut(ctx, name, t.at, "job "+by.String()+" is open")
	case err == nil, kind == job.AlreadyExists: // it was posted before, perhaps as the schedule was then
	case t.at.Before(t.record.late(time.Now())), kind == job.Invalid, kind == job.Unsupported:
		b.metrics.TicksMissed.Add(1)
		b.log.WarnContext(ctx, "a tick of a schedule is left out", "schedule", name, "tick", t.at, "error", err)
		b.leftOut(ctx, name, t.at, job.MessageOf(err))
	default:
		return false
	}
	return true
}

// tryTick tries to post the job of a tick, unless that was done before. by is the job that has
// the schedule's key, if that is why it was not posted.
func (b *Board) tryTick(ctx context.Context, t *dueTick, id job.ID) (again bool, by job.ID, err error) {
	opened, err := b.changing(ctx)
	if err != nil {
		return false, by, err
	}
	if t.record.Overlap != OverlapAllow {
		if by, err = b.overlap(ctx, t.record.Overlap, b.jobsBefore(ctx, t), id); err != nil || by != (job.ID{}) {
			return false, by, err
		}
	}
	posting := t.record.Job
	posting.ID = id
	key := driver.Key{Name: scheduleKey(t.of.name), Open: t.record.Overlap == OverlapSkip, Number: uint64(t.at.UnixMilli())} //nolint:gosec // it is after 1970
	result, by, err := b.postTick(ctx, opened, &posting, key)
	if err == nil {
		err = result.Err
	}
	return result.again, by, err
}

// jobsBefore returns the jobs of a schedule that may be open as a tick comes: that of the tick
// before and, after one that was left out or was triggered, the last one. Where another host has
// handled this tick already, or a later one, the last one came then or since, and is to stay.
func (b *Board) jobsBefore(ctx context.Context, t *dueTick) (ids []job.ID) {
	if r := b.readTick(ctx, t.of.name); r.At.Before(t.at) {
		ids = append(ids, r.ID)
	}
	if !t.last.IsZero() {
		ids = append(ids, b.tickID(t.of.name, t.last))
	}
	return ids
}

// overlap looks at the jobs of a schedule that may still be open when the one of an ID is to be
// posted: it cancels them, or returns one that is open, for which that one is left out.
func (b *Board) overlap(ctx context.Context, what Overlap, last []job.ID, next job.ID) (by job.ID, err error) {
	slices.SortFunc(last, func(a, b job.ID) int { return bytes.Compare(a[:], b[:]) })
	last = slices.DeleteFunc(slices.Compact(last), func(id job.ID) bool { return id == next || id == job.ID{} })
	switch {
	case len(last) == 0:
		return by, nil
	case what == OverlapCancel:
		return by, b.cancelLast(ctx, last)
	}
	return b.openOf(ctx, last)
}

// openOf returns one of a schedule's jobs that is on the board; zero: none is. The schedule's key
// says that of jobs alone which were posted in this store: where the board was imported, or moved
// here, none of those that came along has it.
func (b *Board) openOf(ctx context.Context, last []job.ID) (by job.ID, err error) {
	records, err := b.read(ctx, last, 0)
	if err != nil {
		return by, err
	}
	for i := range records {
		if isOpen(records[i].State) {
			by = last[i]
		}
	}
	return by, nil
}

// cancelLast cancels jobs of a schedule. Only if the store does not say what became of them, the
// next one has to wait.
func (b *Board) cancelLast(ctx context.Context, last []job.ID) error {
	changes, err := b.Cancel(ctx, last, true)
	for i := range changes {
		switch job.KindOf(changes[i].Err) {
		case job.Unavailable, job.OutcomeUnknown, job.Aborted, job.Interrupted:
			err = cmp.Or(err, changes[i].Err)
		default: // it has ended, or ends by itself
		}
	}
	return err
}

// postTick posts a job that takes its schedule's key. by is the job that has the key, if
// that is why it was not posted.
func (b *Board) postTick(ctx context.Context, opened *driver.BoardStatus, posting *job.Posting, key driver.Key) (result JobResult, by job.ID, err error) {
	results := make([]JobResult, 1)
	p := poster{board: b, opened: opened, results: results, room: b.room(opened), now: time.Now()}
	if err := p.prepare(ctx, 0, posting); err != nil {
		return JobResult{}, by, err
	}
	p.ops[0].Keys = append(p.ops[0].Keys, key)
	p.tick = key.Name
	if err := p.postAll(ctx); err != nil {
		return JobResult{}, by, err
	}
	return results[0], p.tickTaken, nil
}

// leftOut writes that a tick was left out, and why.
func (b *Board) leftOut(ctx context.Context, name string, tick time.Time, why string) {
	b.ticked(ctx, name, func(r *tickRecord) {
		if tick.After(r.At) {
			r.At, r.Problem = tick, "the tick of "+tick.Format(time.RFC3339)+" was left out: "+why
		}
	})
}

// ticked writes how far a schedule is, as far as that can be written: it only says where to
// go on.
func (b *Board) ticked(ctx context.Context, name string, change func(*tickRecord)) {
	docs, space := b.driver.Documents(), driver.Space{Board: b.spec.Key, Name: tickSpace}
	for range tries {
		doc, err := docs.Get(ctx, space, name)
		if err != nil && !errors.Is(err, job.NotFound) {
			return
		}
		var before tickRecord
		_ = json.Unmarshal(doc.Data, &before) // one that cannot be read is written anew
		after := before
		if change(&after); after == before {
			return
		}
		data, err := json.Marshal(after)
		if err != nil {
			return
		}
		if _, err = docs.Put(ctx, space, driver.Document{Name: name, Data: data}, doc.Version); !errors.Is(err, job.Aborted) {
			return
		}
	}
}

// readTick returns how far a schedule is, as far as that can be read.
func (b *Board) readTick(ctx context.Context, name string) (r tickRecord) {
	if doc, err := b.driver.Documents().Get(ctx, driver.Space{Board: b.spec.Key, Name: tickSpace}, name); err == nil {
		_ = json.Unmarshal(doc.Data, &r) // else nothing is known
	}
	return r
}

// readTicks returns how far the schedules of the given documents are, whose names come after
// the given one. There may be ticks of others between theirs: of schedules that were deleted as one came.
func (b *Board) readTicks(ctx context.Context, docs []driver.Document, after string) (map[string]tickRecord, error) {
	ticks := map[string]tickRecord{}
	for len(docs) > 0 && after < strings.TrimPrefix(docs[len(docs)-1].Name, schedulePrefix) {
		page, err := b.driver.Documents().List(ctx, driver.Space{Board: b.spec.Key, Name: tickSpace}, after, len(docs))
		if err != nil {
			return nil, err
		}
		for i := range page {
			var r tickRecord
			_ = json.Unmarshal(page[i].Data, &r) // else nothing is known
			ticks[page[i].Name] = r
		}
		if len(page) < len(docs) {
			break
		}
		after = page[len(page)-1].Name
	}
	return ticks, nil
}
