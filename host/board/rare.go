package board

import (
	"time"

	"github.com/boardd/boardd/host/board/record"
	"github.com/boardd/boardd/sdk/job"
)

// rare is what an entry's Extra says: what most jobs have nothing of.
type rare struct {
	book      job.Book
	timeout   time.Duration // of one claim; 0: none
	unique    job.Unique    // without OnConflict
	batch     string
	after     []job.Prerequisite
	notBefore time.Time // of a job that waits for others, as posted: not before this either
}

// rareOf reads an entry's Extra.
func rareOf(extra []byte) (r rare) {
	if len(extra) == 0 {
		return r
	}
	_ = record.EachField(extra, func(tag uint64, data, _ []byte) error { // it never leaves this process
		switch tag {
		case entryBookUUID:
			r.book.UUID = string(data)
		case entryBookName:
			r.book.Name = string(data)
		case entryUnique:
			r.unique.Key = string(data)
		case entryBatch:
			r.batch = string(data)
		case entryAfter:
			if p, err := record.ReadPrerequisite(data); err == nil {
				r.after = append(r.after, p)
			}
		case entryTimeout, entryWindow, entryNotBefore:
			if n, err := record.ReadNumber(data); err == nil {
				r.number(tag, n)
			}
		}
		return nil
	})
	return r
}

// batchOf is the name of the batch in an entry's Extra, if there is one. It is not to be kept.
func batchOf(extra []byte) (name []byte) {
	_ = record.EachField(extra, func(tag uint64, data, _ []byte) error { // it never leaves this process
		if tag == entryBatch {
			name = data
		}
		return nil
	})
	return name
}

func (r *rare) number(tag uint64, n int64) {
	switch tag {
	case entryTimeout:
		r.timeout = time.Duration(n) * time.Microsecond
	case entryWindow:
		r.unique.Window = time.Duration(n) * time.Microsecond
	case entryNotBefore:
		r.notBefore = time.UnixMicro(n).UTC()
	}
}
