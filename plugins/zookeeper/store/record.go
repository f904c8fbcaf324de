package store

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// place says where a job stands, as its record has it.
type place uint8

const (
	onBoard place = iota
	inTrash
	ended
	purged // nothing is left but what retries are answered with
)

// A record is what boardd keeps of one job, in a node named after its uuid,
// beside what TaskFlow keeps. A job that only TaskFlow has touched has none.
//
// Fields marked (stat) are filled in from the node's own stat when they are zero:
// a transaction does not know its number and its time before it is made. They
// are written out when the record is written again.
type record struct {
	place  place
	posted bool // by boardd, which has put here what TaskFlow's posting has no room for

	version   uint64 // (stat) of the job
	position  uint64 // (stat) of the last change
	changedAt int64  // (stat) its time, in Unix milliseconds

	digest   [16]byte
	extra    []byte
	created  int64  // when it was posted; 0 while the posting's node says so
	order    uint64 // (stat) Posting.Sequence, once created says something
	status   []byte
	attached []string // names of attached records, sorted

	holdAlways bool
	holdUntil  int64 // Unix milliseconds; 0: not held

	limits transition.Moves // what the job counts for while it is on the board
	group  string           // that counts the job, while it is on the board or in the trash; "": none

	claim *claim
	lock  int32 // the version that the lock's node has, where this record put one there

	// Once the posting's node is gone.
	name     string
	priority job.Priority
	book     job.Book

	placed uint64 // (stat) when the posting's node came, which tells it from one of before
	node   string // the posting's name in TaskFlow's folder, once it was known
	trash  string // the node that the posting lies in, while it is in the trash

	end    *ending // of a job in the trash: when it was put there, in another store
	exact  exact   // of a job that came from another store
	stamps []stamp
	mark   [16]byte // names the write that made this state
}

// exact are the microseconds of times that are kept in milliseconds.
type exact struct{ created, ended uint16 }

// A claim is one that was made through boardd.
type claim struct {
	owner    string
	token    job.Token // (stat) Epoch
	lease    time.Duration
	noExpiry bool
	session  bool   // it lives as long as the driver's session
	since    int64  // (stat)
	exact    uint16 // the microseconds of since, of a claim that was made in another store
	base     uint64 // what the epoch is above the number of the transaction that made the claim
	limits   transition.Moves
}

// madeAt is when the claim was made.
func (c *claim) madeAt() time.Time {
	return atMillis(c.since).Add(time.Duration(c.exact) * time.Microsecond)
}

// An ending is what is left of a job that ended.
type ending struct {
	outcome job.Outcome
	at      int64     // (stat)
	token   job.Token // that ended it; zero if none did
	stamped bool      // the tombstone is still remembered

	until   int64 // of the final record, in Unix milliseconds; 0: there is none
	data    []byte
	details []byte
	kept    bool // details and the posting's fields belong to the final record
}

// A stamp remembers one op, so that its retry is answered in the same way: an
// ending by its token, everything else by Op.Request.
type stamp struct {
	key       [16]byte // the token's nonce, or the request
	kind      driver.OpKind
	must      driver.Precondition
	outcome   job.Outcome
	token     job.Token // of an ending by token
	version   uint64    // (stat)
	position  uint64    // (stat)
	at        int64     // (stat)
	notBefore int64
}

// settle fills in what the record's own write could not know.
func (r *record) settle(zxid uint64, at int64) {
	set := func(field *uint64) {
		if *field == 0 {
			*field = zxid
		}
	}
	date := func(field *int64) {
		if *field == 0 {
			*field = at
		}
	}
	set(&r.version)
	set(&r.position)
	set(&r.placed)
	date(&r.changedAt)
	if r.created != 0 {
		set(&r.order)
	}
	if r.claim != nil {
		if r.claim.token.Epoch == 0 {
			r.claim.token.Epoch = zxid + r.claim.base
		}
		date(&r.claim.since)
	}
	if r.end != nil {
		date(&r.end.at)
	}
	for i := range r.stamps {
		set(&r.stamps[i].version)
		set(&r.stamps[i].position)
		date(&r.stamps[i].at)
	}
}

// clone returns a copy whose parts can be replaced one by one. The byte slices
// are shared: nobody writes to them.
func (r *record) clone() *record {
	if r == nil {
		return &record{}
	}
	c := *r
	if r.claim != nil {
		held := *r.claim
		c.claim = &held
	}
	if r.end != nil {
		e := *r.end
		c.end = &e
	}
	c.stamps = append([]stamp(nil), r.stamps...)
	return &c
}

// changed makes the next write a change of the job: its version, place in the
// board's history and time are those of the write.
func (r *record) changed() { r.version, r.position, r.changedAt = 0, 0, 0 }

// createdAt is when the job was posted, once the record says so.
func (r *record) createdAt() time.Time {
	return atMillis(r.created).Add(time.Duration(r.exact.created) * time.Microsecond)
}

// endedAt is when the job ended, or was put into the trash, where r.end says so.
func (r *record) endedAt() time.Time {
	return atMillis(r.end.at).Add(time.Duration(r.exact.ended) * time.Microsecond)
}

// micros is what millis leaves out of a time.
func micros(t time.Time) uint16 {
	return uint16(t.Sub(t.Truncate(time.Millisecond)).Microseconds()) //nolint:gosec // less than a thousand
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func atMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
