package embedded

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// posting is what was posted, but for the details themselves. Its slices
// alias what it was decoded from.
type posting struct {
	id       job.ID
	digest   [16]byte
	created  int64
	sequence uint64
	priority job.Priority
	encoding job.Encoding
	details  uint64 // how many bytes of them there are, so that their loss is noticed
	attached uint64 // how many attached records there are, likewise; it does change
	name     []byte
	bookID   []byte
	bookName []byte
	extra    []byte
	apart    uint64 // so many bytes of extra lie in front of the details; 0: extra is here
}

// maxSlim is how many bytes of extra a job's record has with it. A larger one, of many
// operations, lies with the details, so that a claim does not write it again.
const maxSlim = 256

// extraApart is set in the byte of the encoding.
const extraApart = 0x80

func (p *posting) append(b []byte) []byte {
	b = append(b, p.id[:]...)
	b = append(b, p.digest[:]...)
	b = appendInt64(b, p.created)
	b = binary.AppendUvarint(b, p.sequence)
	encoding := byte(p.encoding)
	if p.apart > 0 {
		encoding |= extraApart
	}
	b = append(b, byte(p.priority), encoding)
	b = binary.AppendUvarint(b, p.details)
	b = binary.AppendUvarint(b, p.attached)
	b = appendBytes(b, p.name)
	b = appendBytes(b, p.bookID)
	b = appendBytes(b, p.bookName)
	if p.apart > 0 {
		return binary.AppendUvarint(b, p.apart)
	}
	return appendBytes(b, p.extra)
}

// whole is the posting with its extra, however large.
func (p *posting) whole() *posting {
	w := *p
	w.apart = 0
	return &w
}

// beside is how many bytes lie beside the record, in one record of their own.
func (p *posting) beside() uint64 { return p.apart + p.details }

// join takes in what lies beside the record, and returns the details.
func (p *posting) join(key, value []byte) ([]byte, error) {
	body, err := unseal(kindDetails, key, value)
	if err != nil || uint64(len(body)) != p.beside() {
		return nil, fmt.Errorf("its details, %d bytes: %w", p.beside(), cmp.Or(err, errShort))
	}
	if p.apart > 0 {
		p.extra = body[:p.apart:p.apart]
	}
	return body[p.apart:], nil
}

func (p *posting) read(r *reader) {
	p.id = r.array16()
	p.digest = r.array16()
	p.created = r.int64()
	p.sequence = r.uvarint()
	p.priority = job.Priority(r.byte())
	encoding := r.byte()
	p.encoding = job.Encoding(encoding &^ extraApart)
	p.details = r.uvarint()
	p.attached = r.uvarint()
	p.name = r.bytes()
	p.bookID = r.bytes()
	p.bookName = r.bytes()
	p.extra, p.apart = nil, 0
	if encoding&extraApart == 0 {
		p.extra = r.bytes()
		return
	}
	if p.apart = r.uvarint(); p.apart == 0 || p.apart > math.MaxInt64-p.details {
		r.fail() // nobody writes it so
	}
}

// size is at least what append adds.
func (p *posting) size() int {
	size := 120 + len(p.name) + len(p.bookID) + len(p.bookName)
	if p.apart == 0 {
		size += len(p.extra)
	}
	return size
}

// public copies the posting, so that it outlives the transaction.
func (p *posting) public() driver.Posting {
	return driver.Posting{
		ID: p.id, Name: string(p.name), Priority: p.priority,
		Book:     job.Book{UUID: string(p.bookID), Name: string(p.bookName)},
		Encoding: p.encoding, Extra: clone(p.extra), Digest: p.digest,
		CreatedAt: timeOf(p.created), Sequence: p.sequence,
	}
}

// clone copies b; nothing stays nil.
func clone(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}
