package wire

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
)

// The fields of BatchResult, Result, Claimed and Gone, as those of Change.
const (
	batchSeq     = 1<<3 | inVarint
	batchResults = 2<<3 | inBytes

	resultTag       = 1<<3 | inVarint
	resultKind      = 2<<3 | inVarint
	resultMessage   = 3<<3 | inBytes
	resultOwner     = 4<<3 | inBytes
	resultLeft      = 5<<3 | inVarint
	resultRepeated  = 6<<3 | inVarint
	resultPosition  = 7<<3 | inVarint
	resultVersion   = 8<<3 | inVarint
	resultAt        = 9<<3 | inFixed
	resultNotBefore = 10<<3 | inFixed
	resultLease     = 11<<3 | inVarint
	resultRecord    = 12<<3 | inBytes
	resultClaims    = 13<<3 | inBytes
	resultGone      = 14<<3 | inBytes
	resultMore      = 15<<3 | inVarint
	resultTaken     = 16<<3 | inBytes
	resultGroup     = 17<<3 | inBytes

	groupOpen     = 1<<3 | inVarint
	groupTrashed  = 2<<3 | inVarint
	groupConsumed = 3<<3 | inVarint
	groupCanceled = 4<<3 | inVarint
	groupFailed   = 5<<3 | inVarint
	groupPurged   = 6<<3 | inVarint
	groupClosed   = 7<<3 | inVarint
	groupFollowed = 8<<3 | inVarint

	claimedJob      = 1<<3 | inBytes
	claimedToken    = 2<<3 | inBytes
	claimedLease    = 3<<3 | inVarint
	claimedVersion  = 4<<3 | inVarint
	claimedPosition = 5<<3 | inVarint
	claimedAt       = 6<<3 | inFixed
	claimedRecord   = 7<<3 | inBytes

	goneJob     = 1<<3 | inBytes
	goneKind    = 2<<3 | inVarint
	goneOwner   = 3<<3 | inBytes
	goneMessage = 4<<3 | inBytes
	goneRecord  = 5<<3 | inBytes
)

// An Answer is a BatchResult whose results are still to be read.
type Answer struct {
	Seq    uint64
	Pieces []Piece
}

// A Piece is a Result, or a part of one.
type Piece struct {
	Tag     uint32
	message []byte
}

// ReadAnswer reads a BatchResult, as far as that says what it is about.
func ReadAnswer(message []byte) (a Answer, err error) {
	var r reader
	a.Pieces = make([]Piece, 0, count(message, batchResults))
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case batchSeq:
			a.Seq = f.value
		case batchResults:
			p := Piece{message: f.bytes}
			for f := (fields{rest: p.message}); f.next(); {
				if f.tag == resultTag {
					p.Tag = uint32(f.value)
				}
			}
			a.Pieces = append(a.Pieces, p)
		}
	}
	r.whole(&f)
	return a, r.err
}

// A ResultJoiner puts one result together that may come in pieces.
type ResultJoiner struct {
	claims []driver.Claimed
	gone   []driver.Skipped
	record bool // the last claim's record goes on
	size   int
	Done   bool // nothing more is to come
}

// Add takes a piece; when Done it returns the result, which shares the bytes of its
// pieces.
func (j *ResultJoiner) Add(p Piece) (driver.Result, error) {
	var r reader
	var res driver.Result
	more := false
	n := count(p.message, resultClaims)
	j.claims = slices.Grow(j.claims, n)
	room := recordRoom{expected: n}
	f := fields{rest: p.message}
	for f.next() {
		switch f.tag {
		case resultKind:
			res.Kind = r.kind(int32(f.value))
		case resultMessage:
			res.Message = f.text()
		case resultOwner:
			res.Owner = f.text()
		case resultLeft:
			res.Remaining = time.Duration(r.amount(int64(f.value), "the rest of a lease"))
		case resultRepeated:
			res.Repeated = f.value != 0
		case resultPosition:
			res.Position = driver.Position(f.value)
		case resultVersion:
			res.Version = f.value
		case resultAt:
			res.At = Time(int64(f.value))
		case resultNotBefore:
			res.NotBefore = Time(int64(f.value))
		case resultLease:
			res.Lease = time.Duration(r.amount(int64(f.value), "a lease"))
		case resultRecord:
			r.recordAt(&res.Record, &room, f.bytes)
		case resultClaims:
			j.claim(&r, &room, f.bytes)
		case resultGone:
			j.gone = append(j.gone, r.readGone(&room, f.bytes))
		case resultMore:
			more = f.value != 0
		case resultTaken:
			res.Taken = r.bytes16(f.bytes, "the job that has a key")
		case resultGroup:
			res.Group = r.readGroup(f.bytes)
		}
	}
	r.whole(&f)
	if r.err != nil || more {
		return driver.Result{}, r.err
	}
	j.Done = true
	if j.record {
		r.fail("the record of a claim goes on, but nothing follows")
	}
	res.Claims, res.Skipped = j.claims, j.gone
	return res, r.err
}

func (j *ResultJoiner) claim(r *reader, room *recordRoom, message []byte) {
	c, more := r.readClaimed(room, message)
	if !j.record {
		j.claims = append(j.claims, c)
		j.record = more
		return
	}
	if c.Record == nil || c.Job != [16]byte{} {
		r.fail("the record of a claim goes on, but another claim follows")
		return
	}
	if j.size += recordSize(c.Record); j.size > maxJoined {
		r.fail("a record is larger than %d MiB", maxJoined>>20)
		return
	}
	last := j.claims[len(j.claims)-1].Record
	last.Attached = append(last.Attached, c.Record.Attached...)
	j.record = more
}

// readClaimed reads a claim, and whether its record goes on.
func (r *reader) readClaimed(room *recordRoom, message []byte) (c driver.Claimed, more bool) {
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case claimedJob:
			c.Job = r.bytes16(f.bytes, "a job's id")
		case claimedToken:
			c.Token = r.token(f.bytes)
		case claimedLease:
			c.Lease = time.Duration(r.amount(int64(f.value), "a lease"))
		case claimedVersion:
			c.Version = f.value
		case claimedPosition:
			c.Position = driver.Position(f.value)
		case claimedAt:
			c.At = Time(int64(f.value))
		case claimedRecord:
			more = r.recordAt(&c.Record, room, f.bytes)
		}
	}
	r.whole(&f)
	return c, more
}

func (r *reader) readGroup(message []byte) *driver.Group {
	g := &driver.Group{}
	f := fields{rest: message}
	for f.next() {
		n := int64(f.value)
		switch f.tag {
		case groupOpen:
			g.Open = r.amount(n, "what a group counts")
		case groupTrashed:
			g.Trashed = r.amount(n, "what a group counts")
		case groupConsumed:
			g.Consumed = r.amount(n, "what a group counts")
		case groupCanceled:
			g.Canceled = r.amount(n, "what a group counts")
		case groupFailed:
			g.Failed = r.amount(n, "what a group counts")
		case groupPurged:
			g.Purged = r.amount(n, "what a group counts")
		case groupClosed:
			g.Closed = f.value != 0
		case groupFollowed:
			g.Followed = f.value != 0
		}
	}
	r.whole(&f)
	return g
}

func (r *reader) readGone(room *recordRoom, message []byte) (g driver.Skipped) {
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case goneJob:
			g.Job = r.bytes16(f.bytes, "a job's id")
		case goneKind:
			g.Kind = r.kind(int32(f.value))
		case goneOwner:
			g.Owner = f.text()
		case goneMessage:
			g.Message = f.text()
		case goneRecord:
			r.recordAt(&g.Record, room, f.bytes)
		}
	}
	r.whole(&f)
	return g
}
