package wire

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/boardd/boardd/sdk/driver"
)

// The fields of Record, Posting, Holder and Attachment, as those of Change.
const (
	recordPosting    = 1<<3 | inBytes
	recordState      = 2<<3 | inVarint
	recordStatus     = 3<<3 | inBytes
	recordVersion    = 4<<3 | inVarint
	recordPosition   = 5<<3 | inVarint
	recordHolder     = 6<<3 | inBytes
	recordNotBefore  = 7<<3 | inFixed
	recordHeld       = 8<<3 | inVarint
	recordModifiedAt = 9<<3 | inFixed
	recordEndedAt    = 10<<3 | inFixed
	recordOutcome    = 11<<3 | inVarint
	recordFinal      = 12<<3 | inBytes
	recordAttached   = 13<<3 | inBytes
	recordMore       = 14<<3 | inVarint
	recordCorrupt    = 15<<3 | inBytes
	recordEndedBy    = 16<<3 | inBytes

	postingID        = 1<<3 | inBytes
	postingName      = 2<<3 | inBytes
	postingPriority  = 3<<3 | inVarint
	postingBookUUID  = 4<<3 | inBytes
	postingBookName  = 5<<3 | inBytes
	postingEncoding  = 6<<3 | inVarint
	postingDetails   = 7<<3 | inBytes
	postingExtra     = 8<<3 | inBytes
	postingDigest    = 9<<3 | inBytes
	postingCreatedAt = 10<<3 | inFixed
	postingSequence  = 11<<3 | inVarint

	holderOwner    = 1<<3 | inBytes
	holderToken    = 2<<3 | inBytes
	holderForeign  = 3<<3 | inVarint
	holderNoExpiry = 4<<3 | inVarint
	holderLeft     = 5<<3 | inVarint
	holderSince    = 6<<3 | inFixed

	attachmentName   = 1<<3 | inBytes
	attachmentData   = 2<<3 | inBytes
	attachmentRemove = 3<<3 | inVarint
)

func (w *writer) record(rec *driver.Record) {
	at := w.open(recordPosting)
	w.posting(&rec.Posting)
	w.close(at)
	w.number(recordState, uint64(rec.State))
	w.bytes(recordStatus, rec.Status)
	w.number(recordVersion, rec.Version)
	w.number(recordPosition, uint64(rec.Position))
	if h := rec.Holder; h != nil {
		at := w.open(recordHolder)
		w.holder(h)
		w.close(at)
	}
	w.time(recordNotBefore, rec.NotBefore)
	w.flag(recordHeld, rec.Held)
	w.time(recordModifiedAt, rec.ModifiedAt)
	w.time(recordEndedAt, rec.EndedAt)
	w.number(recordOutcome, uint64(rec.Outcome))
	w.bytes(recordFinal, rec.Final)
	for i := range rec.Attached {
		a := &rec.Attached[i]
		at := w.open(recordAttached)
		w.text(attachmentName, a.Name)
		if len(a.Data) > 0 {
			w.bytes(attachmentData, a.Data)
		}
		w.flag(attachmentRemove, a.Delete)
		w.close(at)
	}
	w.text(recordCorrupt, rec.Corrupt)
	if !rec.EndedBy.IsZero() {
		w.bytes(recordEndedBy, tokenBytes(rec.EndedBy))
	}
}

func (w *writer) posting(p *driver.Posting) {
	w.id(postingID, (*[16]byte)(&p.ID))
	w.text(postingName, p.Name)
	w.number(postingPriority, protowire.EncodeZigZag(int64(p.Priority)))
	w.text(postingBookUUID, p.Book.UUID)
	w.text(postingBookName, p.Book.Name)
	w.number(postingEncoding, uint64(p.Encoding))
	w.bytes(postingDetails, p.Details)
	if len(p.Extra) > 0 {
		w.bytes(postingExtra, p.Extra)
	}
	w.id(postingDigest, &p.Digest)
	w.time(postingCreatedAt, p.CreatedAt)
	w.number(postingSequence, p.Sequence)
}

func (w *writer) holder(h *driver.Holder) {
	w.text(holderOwner, h.Owner)
	if !h.Token.IsZero() {
		w.bytes(holderToken, tokenBytes(h.Token))
	}
	w.flag(holderForeign, h.Foreign)
	w.flag(holderNoExpiry, h.NoExpiry)
	w.number(holderLeft, protowire.EncodeZigZag(int64(h.Remaining)))
	w.time(holderSince, h.Since)
}

// A recordRoom is memory for records, a piece for up to recordsTogether of them,
// which lives as long as any of them does.
type recordRoom struct {
	free     []driver.Record
	expected int // that are still to come
}

const recordsTogether = 32

// next returns an empty record.
func (m *recordRoom) next() *driver.Record {
	if len(m.free) == 0 {
		m.free = make([]driver.Record, min(max(m.expected, 1), recordsTogether))
	}
	rec := &m.free[0]
	m.free = m.free[1:]
	m.expected--
	return rec
}

// recordAt reads a record into a place for one, and reports whether it goes on.
func (r *reader) recordAt(place **driver.Record, room *recordRoom, message []byte) (more bool) {
	if *place == nil {
		*place = room.next()
	}
	return r.readRecord(*place, message)
}

func (r *reader) readRecord(rec *driver.Record, message []byte) (more bool) {
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case recordPosting:
			r.readPosting(&rec.Posting, f.bytes)
		case recordState:
			rec.State = r.state(int32(f.value))
		case recordStatus:
			rec.Status = f.present()
		case recordVersion:
			rec.Version = f.value
		case recordPosition:
			rec.Position = driver.Position(f.value)
		case recordHolder:
			if rec.Holder == nil {
				rec.Holder = &driver.Holder{}
			}
			r.readHolder(rec.Holder, f.bytes)
		case recordNotBefore:
			rec.NotBefore = Time(int64(f.value))
		case recordHeld:
			rec.Held = f.value != 0
		case recordModifiedAt:
			rec.ModifiedAt = Time(int64(f.value))
		case recordEndedAt:
			rec.EndedAt = Time(int64(f.value))
		case recordOutcome:
			rec.Outcome = r.outcome(int32(f.value))
		case recordFinal:
			rec.Final = f.present()
		case recordAttached:
			rec.Attached = append(rec.Attached, r.readAttachment(f.bytes))
		case recordMore:
			more = f.value != 0
		case recordCorrupt:
			rec.Corrupt = f.text()
		case recordEndedBy:
			rec.EndedBy = r.token(f.bytes)
		}
	}
	r.whole(&f)
	return more
}

func (r *reader) readPosting(p *driver.Posting, message []byte) {
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case postingID:
			p.ID = r.bytes16(f.bytes, "a job's id")
		case postingName:
			p.Name = f.text()
		case postingPriority:
			p.Priority = r.priority(int32(protowire.DecodeZigZag(f.value & math.MaxUint32)))
		case postingBookUUID:
			p.Book.UUID = f.text()
		case postingBookName:
			p.Book.Name = f.text()
		case postingEncoding:
			p.Encoding = r.encoding(int32(f.value))
		case postingDetails:
			p.Details = f.present()
		case postingExtra:
			p.Extra = f.present()
		case postingDigest:
			p.Digest = r.bytes16(f.bytes, "a digest")
		case postingCreatedAt:
			p.CreatedAt = Time(int64(f.value))
		case postingSequence:
			p.Sequence = f.value
		}
	}
	r.whole(&f)
}

func (r *reader) readHolder(h *driver.Holder, message []byte) {
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case holderOwner:
			h.Owner = f.text()
		case holderToken:
			h.Token = r.token(f.bytes)
		case holderForeign:
			h.Foreign = f.value != 0
		case holderNoExpiry:
			h.NoExpiry = f.value != 0
		case holderLeft:
			h.Remaining = time.Duration(protowire.DecodeZigZag(f.value))
		case holderSince:
			h.Since = Time(int64(f.value))
		}
	}
	r.whole(&f)
}

func (r *reader) readAttachment(message []byte) (a driver.Attachment) {
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case attachmentName:
			a.Name = f.text()
		case attachmentData:
			a.Data = f.present()
		case attachmentRemove:
			a.Delete = f.value != 0
		}
	}
	r.whole(&f)
	return a
}
