package wire

import (
	"slices"

	"github.com/boardd/boardd/sdk/driver"
)

// A watch tells of every change of a board, three of each job's life: most of what
// travels between driver and host. So its messages are written and read straight,
// without a message of generated code for each part; what travels is the same.

// The fields of Changes and Change, as they stand before a value: eight times their
// number and how the value is written. A test compares what is written and read by
// these and by recordfields.go's with the generated code.
const (
	changesList     = 1<<3 | inBytes
	changesPosition = 2<<3 | inVarint
	changesResync   = 3<<3 | inVarint
	changesMore     = 4<<3 | inVarint
	changesInbox    = 5<<3 | inVarint

	changeEvent    = 1<<3 | inVarint
	changeJob      = 2<<3 | inBytes
	changePosition = 3<<3 | inVarint
	changeAt       = 4<<3 | inFixed
	changeReason   = 5<<3 | inBytes
	changeOwner    = 6<<3 | inBytes
	changeRecord   = 7<<3 | inBytes
	changeSparse   = 8<<3 | inVarint
)

// SendChanges sends a step of a watch in as many messages as it needs. Each is
// appended to what room returns for about so many bytes.
func SendChanges(c *driver.Changes, room func(size int) []byte, send func(message []byte) error) error {
	list := c.List
	for {
		n, size := 0, 64
		for ; n < len(list); n++ {
			one := 96 + len(list[n].Reason) + len(list[n].Owner) + recordSize(list[n].Record)
			if size+one > PageSize && n > 0 {
				break
			}
			size += one
		}
		w := writer{room(size)}
		for i := range list[:n] {
			at := w.open(changesList)
			w.change(&list[i])
			w.close(at)
		}
		if list = list[n:]; len(list) == 0 {
			w.number(changesPosition, uint64(c.Position))
			w.flag(changesResync, c.Resync)
			w.flag(changesInbox, c.Inbox)
			return send(w.b)
		}
		w.flag(changesMore, true)
		if err := send(w.b); err != nil {
			return err
		}
	}
}

func (w *writer) change(c *driver.Change) {
	w.number(changeEvent, uint64(c.Event))
	w.id(changeJob, (*[16]byte)(&c.Job))
	w.number(changePosition, uint64(c.Position))
	w.time(changeAt, c.At)
	w.text(changeReason, c.Reason)
	w.text(changeOwner, c.Owner)
	if c.Record != nil {
		at := w.open(changeRecord)
		w.record(c.Record)
		w.close(at)
	}
	w.flag(changeSparse, c.Sparse)
}

// AddChanges puts the next message of a step to those that came before it, and
// reports whether the step goes on. What is put there shares the message's bytes.
func AddChanges(c *driver.Changes, message []byte) (more bool, err error) {
	var r reader
	n := count(message, changesList)
	c.List = slices.Grow(c.List, n)
	room := recordRoom{expected: n}
	c.Position, c.Resync, c.Inbox = 0, false, false
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case changesList:
			c.List = append(c.List, driver.Change{})
			r.change(&c.List[len(c.List)-1], &room, f.bytes)
		case changesPosition:
			c.Position = driver.Position(f.value)
		case changesResync:
			c.Resync = f.value != 0
		case changesInbox:
			c.Inbox = f.value != 0
		case changesMore:
			more = f.value != 0
		}
	}
	r.whole(&f)
	return more, r.err
}

func (r *reader) change(c *driver.Change, room *recordRoom, message []byte) {
	f := fields{rest: message}
	for f.next() {
		switch f.tag {
		case changeEvent:
			c.Event = r.event(int32(f.value))
		case changeJob:
			c.Job = r.bytes16(f.bytes, "a job's id")
		case changePosition:
			c.Position = driver.Position(f.value)
		case changeAt:
			c.At = Time(int64(f.value))
		case changeReason:
			c.Reason = f.text()
		case changeOwner:
			c.Owner = f.text()
		case changeRecord:
			r.recordAt(&c.Record, room, f.bytes)
		case changeSparse:
			c.Sparse = f.value != 0
		}
	}
	r.whole(&f)
}
