package wire

import (
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin/internal/pb"
)

func postingTo(p *driver.Posting) *pb.Posting {
	return &pb.Posting{
		Id: idBytes(&p.ID), Name: p.Name, Priority: int32(p.Priority), BookUuid: p.Book.UUID, BookName: p.Book.Name,
		Encoding: pb.Encoding(p.Encoding), Details: p.Details, Extra: p.Extra, Digest: nonceBytes(&p.Digest),
		CreatedAt: Nanos(p.CreatedAt), Sequence: p.Sequence,
	}
}

func (r *reader) posting(m *pb.Posting) driver.Posting {
	if m == nil {
		return driver.Posting{}
	}
	return driver.Posting{
		ID: r.bytes16(m.Id, "a job's id"), Name: m.Name,
		Priority: r.priority(m.Priority),
		Book:     job.Book{UUID: m.BookUuid, Name: m.BookName},
		Encoding: r.encoding(int32(m.Encoding)),
		Details:  slices.Clip(m.Details), Extra: slices.Clip(m.Extra), Digest: r.bytes16(m.Digest, "a digest"),
		CreatedAt: Time(m.CreatedAt), Sequence: m.Sequence,
	}
}

func (r *reader) priority(n int32) job.Priority {
	if n < math.MinInt8 || n > math.MaxInt8 {
		r.fail("a priority is %d, want -2 to 2", n)
	}
	return job.Priority(n)
}

// RecordTo returns a record as one message.
func RecordTo(rec *driver.Record) *pb.Record {
	m := &pb.Record{
		Posting: postingTo(&rec.Posting), State: pb.State(rec.State), Status: rec.Status, Version: rec.Version,
		Position: uint64(rec.Position), NotBefore: Nanos(rec.NotBefore), Held: rec.Held, ModifiedAt: Nanos(rec.ModifiedAt),
		EndedAt: Nanos(rec.EndedAt), Outcome: pb.Outcome(rec.Outcome), Final: rec.Final, Attached: attachmentsTo(rec.Attached), Corrupt: rec.Corrupt,
		EndedBy: tokenBytes(rec.EndedBy),
	}
	if h := rec.Holder; h != nil {
		m.Holder = &pb.Holder{
			Owner: h.Owner, Token: tokenBytes(h.Token), Foreign: h.Foreign, NoExpiry: h.NoExpiry,
			Left: int64(h.Remaining), Since: Nanos(h.Since),
		}
	}
	return m
}

// RecordFrom reads a record.
func RecordFrom(m *pb.Record) (driver.Record, error) {
	var r reader
	rec := r.record(m)
	return rec, r.err
}

func (r *reader) record(m *pb.Record) driver.Record {
	rec := driver.Record{
		Posting: r.posting(m.Posting),
		State:   r.state(int32(m.State)),
		Status:  slices.Clip(m.Status), Version: m.Version, Position: driver.Position(m.Position), NotBefore: Time(m.NotBefore),
		Held: m.Held, ModifiedAt: Time(m.ModifiedAt), EndedAt: Time(m.EndedAt), Outcome: r.outcome(int32(m.Outcome)),
		Final: slices.Clip(m.Final), Attached: attachmentsFrom(m.Attached), Corrupt: m.Corrupt,
		EndedBy: r.token(m.EndedBy),
	}
	if h := m.Holder; h != nil {
		rec.Holder = &driver.Holder{
			Owner: h.Owner, Token: r.token(h.Token), Foreign: h.Foreign, NoExpiry: h.NoExpiry,
			Remaining: time.Duration(h.Left), Since: Time(h.Since),
		}
	}
	return rec
}

func recordOrNil(rec *driver.Record) *pb.Record {
	if rec == nil {
		return nil
	}
	return RecordTo(rec)
}

// recordSize is about what a record takes on the wire; never much less.
func recordSize(rec *driver.Record) int {
	if rec == nil {
		return 0
	}
	n := 256 + len(rec.Posting.Name) + len(rec.Posting.Details) + len(rec.Posting.Extra) + len(rec.Posting.Book.Name) +
		len(rec.Posting.Book.UUID) + len(rec.Status) + len(rec.Final) + len(rec.Corrupt)
	if rec.Holder != nil {
		n += len(rec.Holder.Owner) + 64
	}
	for i := range rec.Attached {
		n += attachmentSize(&rec.Attached[i])
	}
	return n
}

func attachmentSize(a *driver.Attachment) int { return len(a.Name) + len(a.Data) + 16 }

// recordPieces returns a record as messages of at most about size bytes, but for
// what cannot be cut.
func recordPieces(rec *driver.Record, size int) []*pb.Record {
	if recordSize(rec) <= size {
		return []*pb.Record{RecordTo(rec)}
	}
	head := *rec
	head.Attached = nil
	last := RecordTo(&head)
	pieces, used := []*pb.Record{last}, recordSize(&head)
	for i := range rec.Attached {
		n := attachmentSize(&rec.Attached[i])
		if used+n > size {
			last.More = true
			last, used = &pb.Record{}, 0
			pieces = append(pieces, last)
		}
		last.Attached = append(last.Attached, attachmentsTo(rec.Attached[i:i+1])...)
		used += n
	}
	return pieces
}

// A Joiner puts records back together that came in pieces.
type Joiner struct {
	open bool // the last record goes on
	size int  // of the record that goes on
}

// maxJoined bounds what one record may grow to, in bytes.
const maxJoined = 256 << 20

// Add appends what m brings to list.
func (j *Joiner) Add(list []driver.Record, m *pb.Record) ([]driver.Record, error) {
	var r reader
	rec := r.record(m)
	if r.err != nil {
		return list, r.err
	}
	if !j.open {
		list, j.size = append(list, rec), 0
	} else if last, err := j.extend(list, &rec); err != nil {
		return list, err
	} else {
		last.Attached = append(last.Attached, rec.Attached...)
	}
	j.open = m.More
	return list, nil
}

func (j *Joiner) extend(list []driver.Record, rec *driver.Record) (*driver.Record, error) {
	var r reader
	if len(list) == 0 {
		r.fail("a record goes on that was never begun")
		return nil, r.err
	}
	if j.size += recordSize(rec); j.size > maxJoined {
		r.fail("a record is larger than %d MiB", maxJoined>>20)
		return nil, r.err
	}
	return &list[len(list)-1], nil
}

// Done says what is wrong if the last record has not ended.
func (j *Joiner) Done() error {
	var r reader
	if j.open {
		r.fail("the last record goes on, but nothing follows")
	}
	return r.err
}
