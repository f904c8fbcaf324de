package embedded

import (
	"encoding/binary"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// endedRecord is what is left of a job that ended: a tombstone, which answers
// retries for the board's window, and where the board keeps history the final
// record as well. It is kept by the position of the ending, so that the order
// of keys is the order of time.
type endedRecord struct {
	posting // all of it only with keepPosting; otherwise id, name, digest, sequence, created

	version  uint64
	at       int64
	outcome  job.Outcome
	must     driver.Precondition // of the op that ended it
	token    job.Token           // likewise; zero if it went by no token
	request  [16]byte            // likewise
	position uint64

	final        bool // there is a final record, until keepUntil
	keepUntil    int64
	keepPosting  bool
	keepAttached bool
	size         int64 // of all that is kept, as MaxFinalBytes counts it
	status       []byte
	data         []byte
}

const (
	endedFinal byte = 1 << iota
	endedPosting
	endedAttached
	endedByToken
)

func (e *endedRecord) flags() byte {
	var flags byte
	for _, f := range [...]struct {
		set  bool
		flag byte
	}{
		{e.final, endedFinal},
		{e.keepPosting, endedPosting},
		{e.keepAttached, endedAttached},
		{!e.token.IsZero(), endedByToken},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

func (e *endedRecord) append(b []byte) []byte {
	flags := e.flags()
	b = append(b, flags)
	b = e.posting.append(b)
	b = binary.AppendUvarint(b, e.version)
	b = binary.AppendUvarint(b, e.position)
	b = appendInt64(b, e.at)
	b = append(b, byte(e.outcome), byte(e.must))
	b = append(b, e.request[:]...)
	if flags&endedByToken != 0 {
		b = appendToken(b, e.token)
	}
	if flags&endedFinal != 0 {
		b = appendInt64(b, e.keepUntil)
		b = binary.AppendUvarint(b, uint64(e.size))
		b = appendBytes(b, e.status)
		b = appendBytes(b, e.data)
	}
	return b
}

func (e *endedRecord) room() int {
	return e.posting.size() + 160 + len(e.status) + len(e.data)
}

func (e *endedRecord) decode(body []byte) error {
	*e = endedRecord{}
	r := reader{b: body}
	flags := r.byte()
	e.final = flags&endedFinal != 0
	e.keepPosting, e.keepAttached = flags&endedPosting != 0, flags&endedAttached != 0
	e.posting.read(&r)
	e.version = r.uvarint()
	e.position = r.uvarint()
	e.at = r.int64()
	e.outcome = job.Outcome(r.byte())
	e.must = driver.Precondition(r.byte())
	e.request = r.array16()
	if flags&endedByToken != 0 {
		e.token = readToken(&r)
	}
	if e.final {
		e.keepUntil = r.int64()
		e.size = int64(r.uvarint())
		e.status = r.bytes()
		e.data = r.bytes()
	}
	return r.done()
}

func (e *endedRecord) open(key, value []byte) error {
	body, err := unseal(kindEnded, key, value)
	if err != nil {
		return err
	}
	return e.decode(body)
}

// stripped leaves only what a tombstone needs.
func (e *endedRecord) stripped() endedRecord {
	t := *e
	t.posting = posting{id: e.id, digest: e.digest, created: e.created, sequence: e.sequence, name: e.name}
	t.final, t.keepUntil, t.keepPosting, t.keepAttached = false, 0, false, false
	t.size, t.status, t.data = 0, nil, nil
	return t
}

// keeps reports whether the final record is still to be seen: the clean-up may
// be behind.
func (e *endedRecord) keeps(at instant) bool { return e.final && e.keepUntil > at.steady.UnixNano() }

// stamp is that of the op which ended the job.
func (e *endedRecord) stamp() transition.Stamp {
	random := e.request
	if !e.token.IsZero() {
		random = e.token.Nonce
	}
	return transition.Stamp{
		Key: transition.Key{Job: e.id, Random: random}, Kind: driver.Remove, Precondition: e.must, Outcome: e.outcome, Token: e.token,
		Version: e.version, Position: driver.Position(e.position), At: timeOf(e.at),
	}
}

// public copies the record for the caller. What is kept beside it is added by
// whoever reads.
func (e *endedRecord) public(parts driver.Parts) *driver.Record {
	rec := &driver.Record{
		Posting: e.posting.public(), State: job.Complete, Outcome: e.outcome, Version: e.version,
		Position: driver.Position(e.position), ModifiedAt: timeOf(e.at), EndedAt: timeOf(e.at), Status: clone(e.status),
	}
	if parts&driver.FinalData != 0 {
		rec.EndedBy = e.token
		if e.final {
			rec.Final = clone(e.data)
		}
	}
	return rec
}
