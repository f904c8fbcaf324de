package store

import (
	"time"

	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A view is all that is known of one job, from the three nodes that it may have:
// the posting and the lock, which are TaskFlow's, and the record. A view is
// never changed, only replaced, so that whoever has one may keep it.
type view struct {
	id job.ID

	rec        *record   // nil: there is none
	recVersion int32     // of its node
	recZxid    uint64    // of its node's last change
	seen       time.Time // since when this process knows the record as it is

	last      string           // the name of the posting's node before it went
	lastCzxid uint64           // likewise
	node      string           // the posting's name; empty: there is none
	post      taskflow.Posting // without details
	czxid     uint64
	posted    int64 // in Unix milliseconds

	lock *lock // nil: there is none

	// A final record is not kept in memory: slim says that rec is without it, and
	// size how large it is.
	slim bool
	size int64

	// A change by another program that left no trace in the nodes, such as the
	// end of its claim, is counted here.
	foreign   uint64
	foreignAt int64
}

// A lock is the node that TaskFlow knows a claim by.
type lock struct {
	version int32
	owner   string
	session int64 // that it ends with; 0: none
	czxid   uint64
	since   int64
}

// holdOwner is who TaskFlow sees on a job that may not run yet.
const holdOwner = "boardd:hold"

// onBoard reports whether the job is open.
func (v *view) onBoard() bool { return v.node != "" && (v.rec == nil || v.rec.place == onBoard) }

// thin returns the view without a final record.
func (v *view) thin() *view {
	if v.slim || v.rec == nil || v.rec.end == nil || v.rec.end.until == 0 {
		return v
	}
	t := *v
	t.slim, t.size = true, int64(len(v.rec.end.data)+len(v.rec.status))
	if v.rec.end.kept {
		t.size += int64(len(v.rec.end.details) + len(v.rec.extra))
	}
	rec, end := *v.rec, *v.rec.end
	end.data, end.details, rec.end = nil, nil, &end
	t.rec = &rec
	return &t
}

// gone reports whether another program took the posting away: the very one that
// the record is about was there, and is no more.
func (v *view) gone() bool {
	return v.node == "" && v.rec != nil && v.rec.place == onBoard && v.lastCzxid == v.rec.placed
}

// adrift reports whether the job is on the board, and where its posting is is not
// known here.
func (v *view) adrift() bool {
	return v.node == "" && v.rec != nil && v.rec.place == onBoard && v.lastCzxid != v.rec.placed
}

// ours reports whether the lock is one that the record has put there. TaskFlow's
// own locks have version 0, and the record's at least 1.
func (v *view) ours() bool {
	return v.lock != nil && v.rec != nil && v.rec.lock > 0 && v.lock.version == v.rec.lock
}

// claim returns the claim made through boardd that stands, or nil.
func (v *view) claim() *claim {
	if v.onBoard() && v.ours() {
		return v.rec.claim
	}
	return nil
}

// stranger returns the lock of another program's claim, or nil.
func (v *view) stranger() *lock {
	if v.onBoard() && v.lock != nil && !v.ours() {
		return v.lock
	}
	return nil
}

// owner returns who holds the job, lapsed or not; "" if nobody.
func (v *view) owner() string {
	if c := v.claim(); c != nil {
		return c.owner
	}
	if l := v.stranger(); l != nil {
		return l.owner
	}
	return ""
}

func (v *view) held() bool { return v.claim() != nil || v.stranger() != nil }

// margin is added to a lease, as a part of it, for clocks that do not run
// equally fast.
const margin = 1000

// left returns the rest of a claim's lease, at most the lease; 0 or less when it
// ran out. It counts from when this process saw the claim as it is, so that no
// clock of another machine matters. Without expiry it is 1.
func (v *view) left(at instant) time.Duration {
	c := v.claim()
	switch {
	case c == nil || c.token.Generation != at.generation:
		return 0
	case c.noExpiry:
		return 1
	}
	return min(c.lease, c.lease+c.lease/margin-at.mono.Sub(v.seen))
}

// live reports whether somebody holds the job under a claim that has not lapsed.
func (v *view) live(at instant) bool {
	return v.stranger() != nil || v.claim() != nil && v.left(at) > 0
}

// waits reports whether the job is held back.
func (v *view) waits(at instant) bool {
	return v.rec != nil && (v.rec.holdAlways || at.millis() < v.rec.holdUntil)
}

func (v *view) position() uint64 {
	p := max(v.foreign, v.czxid)
	if l := v.stranger(); l != nil {
		p = max(p, l.czxid)
	}
	if v.rec != nil {
		p = max(p, v.rec.position)
	}
	return p
}

func (v *view) version() uint64 {
	n := max(v.foreign, v.czxid)
	if l := v.stranger(); l != nil {
		n = max(n, l.czxid)
	}
	if v.rec != nil {
		n = max(n, v.rec.version)
	}
	return n
}

func (v *view) changedAt() int64 {
	t := max(v.foreignAt, v.posted)
	if l := v.stranger(); l != nil {
		t = max(t, l.since)
	}
	if v.rec != nil {
		t = max(t, v.rec.changedAt)
	}
	return t
}

// state returns where the job stands for everybody. A job whose posting another
// program took away has ended.
func (v *view) state(at instant) job.State {
	switch {
	case v.rec != nil && v.rec.place == purged, v.rec == nil && v.node == "":
		return job.Unknown
	case v.rec != nil && v.rec.place == ended:
		if v.forgotten(at) {
			return job.Unknown
		}
		return job.Complete
	case v.rec != nil && v.rec.place == inTrash:
		return job.Trashed
	case v.gone():
		return job.Complete
	case v.node == "":
		return job.Unknown // where its posting is has yet to be read
	case v.held():
		return job.Claimed
	}
	return job.Unclaimed
}

// forgotten reports whether a job that ended is older than the board remembers.
func (v *view) forgotten(at instant) bool {
	e := v.rec.end
	return e == nil || !e.remembered(at) && !e.final(at)
}

func (e *ending) remembered(at instant) bool {
	return e.stamped && at.millis()-e.at < at.window.Milliseconds()
}

func (e *ending) final(at instant) bool { return e.until != 0 && at.millis() < e.until }

// show returns the job as the contract has it, without details and attached
// records.
func (v *view) show(at instant, parts driver.Parts) *driver.Record {
	r := &driver.Record{
		Posting: v.posting(at), State: v.state(at), Version: v.version(), Position: at.shown(v.position()),
		ModifiedAt: atMillis(v.changedAt()),
	}
	if r.State == job.Unknown {
		return &driver.Record{Posting: driver.Posting{ID: v.id}}
	}
	if rec := v.rec; rec != nil {
		r.Status, r.Held, r.NotBefore = rec.status, rec.holdAlways, atMillis(rec.holdUntil)
		if rec.place == inTrash {
			r.EndedAt = atMillis(rec.changedAt)
			if rec.end != nil {
				r.EndedAt = rec.endedAt()
			}
		}
	}
	if r.State == job.Complete {
		v.showEnd(r, at, parts)
	}
	if r.State == job.Claimed {
		r.Holder = v.holder(at)
	}
	return r
}

func (v *view) showEnd(r *driver.Record, at instant, parts driver.Parts) {
	r.Held, r.NotBefore = false, time.Time{}
	if v.rec == nil || v.rec.end == nil {
		r.Outcome, r.EndedAt, r.Status = job.Consumed, r.ModifiedAt, nil
		return
	}
	e := v.rec.end
	r.Outcome, r.EndedAt = e.outcome, v.rec.endedAt()
	if parts&driver.FinalData != 0 {
		r.EndedBy = e.token
	}
	if !e.final(at) {
		r.Status = nil
		return
	}
	if parts&driver.FinalData != 0 {
		r.Final = e.data
	}
	if parts&driver.Details != 0 {
		r.Posting.Details = e.details
	}
}

func (v *view) holder(at instant) *driver.Holder {
	if c := v.claim(); c != nil {
		h := &driver.Holder{Owner: c.owner, Token: c.token, NoExpiry: c.noExpiry, Since: c.madeAt()}
		if c.token.Generation != at.generation {
			h.NoExpiry = false // the board has lost changes since, and this claim with them
		}
		if !h.NoExpiry {
			h.Remaining = v.left(at)
		}
		return h
	}
	l := v.stranger()
	return &driver.Holder{Owner: l.owner, Foreign: true, NoExpiry: true, Since: atMillis(l.since)}
}

// posting returns the posting without details, from TaskFlow's node or, once
// that is gone, from the record.
func (v *view) posting(at instant) driver.Posting {
	p := driver.Posting{ID: v.id, Encoding: job.JSON}
	rec := v.rec
	if v.node != "" {
		p.Name, p.Priority, p.Book = v.post.Name, v.post.Priority, v.post.Book
		p.CreatedAt, p.Sequence = atMillis(v.posted), v.czxid
	}
	if rec == nil {
		return p
	}
	p.Digest = rec.digest
	if rec.created != 0 {
		p.CreatedAt, p.Sequence = rec.createdAt(), rec.order
	}
	if v.node == "" {
		p.Name = rec.name
	}
	if rec.place == ended && (rec.end == nil || !rec.end.kept || !rec.end.final(at)) {
		return p
	}
	p.Extra = rec.extra
	if v.node == "" {
		p.Priority, p.Book = rec.priority, rec.book
	}
	return p
}

// carry writes into r what only the posting's node said, before that goes.
func (v *view) carry(r *record) {
	if v.node == "" {
		return
	}
	r.name, r.priority, r.book = v.post.Name, v.post.Priority, v.post.Book
	if r.created == 0 {
		r.created, r.order = v.posted, v.czxid
	}
}
