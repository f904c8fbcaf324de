package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// recordFormat begins each record. Another number is a later program's.
const recordFormat = 1

var errShort = errors.New("it ends too early")

// encode returns the record's bytes: numbers as varints, texts with their
// length before them.
func (r *record) encode() []byte {
	size := 256 + len(r.extra) + len(r.status) + 96*len(r.stamps)
	if r.end != nil {
		size += len(r.end.data) + len(r.end.details)
	}
	w := writer{append(make([]byte, 0, size), recordFormat, byte(r.place))}
	counts := r.limits != nil || r.claim != nil && r.claim.limits != nil
	w.flags(r.posted, r.holdAlways, r.claim != nil, r.end != nil, counts, r.exact != exact{}, r.group != "")
	w.uint(r.version)
	w.uint(r.position)
	w.int(r.changedAt)
	w.raw(r.digest[:])
	w.bytes(r.extra)
	w.int(r.created)
	w.uint(r.order)
	w.bytes(r.status)
	w.uint(uint64(len(r.attached)))
	for _, name := range r.attached {
		w.bytes([]byte(name))
	}
	w.int(r.holdUntil)
	w.int(int64(r.lock))
	w.bytes([]byte(r.name))
	w.int(int64(r.priority))
	w.bytes([]byte(r.book.UUID))
	w.bytes([]byte(r.book.Name))
	w.uint(r.placed)
	w.bytes([]byte(r.node))
	w.bytes([]byte(r.trash))
	w.raw(r.mark[:])
	w.claim(r.claim)
	w.ending(r.end)
	w.uint(uint64(len(r.stamps)))
	for i := range r.stamps {
		w.stamp(&r.stamps[i])
	}
	if counts {
		w.shares(r.limits)
		if r.claim != nil {
			w.shares(r.claim.limits)
		}
	}
	if r.exact != (exact{}) {
		w.uint(uint64(r.exact.created))
		w.uint(uint64(r.exact.ended))
	}
	if r.group != "" {
		w.bytes([]byte(r.group))
	}
	return w.out
}

// decodeRecord reads what encode wrote. The record shares data.
func decodeRecord(data []byte) (*record, error) {
	if len(data) < 2 {
		return nil, errShort
	}
	if data[0] != recordFormat {
		return nil, fmt.Errorf("it has format %d: this program reads %d", data[0], recordFormat)
	}
	r := &record{place: place(data[1])}
	if r.place > purged {
		return nil, fmt.Errorf("it stands at place %d: want at most %d", r.place, purged)
	}
	d := reader{in: data[2:]}
	var claimed, hasEnd, counts, precise, grouped bool
	d.flags(&r.posted, &r.holdAlways, &claimed, &hasEnd, &counts, &precise, &grouped)
	r.version, r.position, r.changedAt = d.uint(), d.uint(), d.int()
	d.raw(r.digest[:])
	r.extra, r.created, r.order, r.status = d.bytes(), d.int(), d.uint(), d.bytes()
	for range d.count() {
		r.attached = append(r.attached, string(d.bytes()))
	}
	r.holdUntil, r.lock = d.int(), int32(d.within(math.MinInt32, math.MaxInt32))
	r.name, r.priority = string(d.bytes()), job.Priority(d.within(int64(job.VeryHigh), int64(job.VeryLow)))
	r.book.UUID, r.book.Name = string(d.bytes()), string(d.bytes())
	r.placed, r.node, r.trash = d.uint(), string(d.bytes()), string(d.bytes())
	d.raw(r.mark[:])
	if claimed {
		r.claim = d.claim()
	}
	if hasEnd {
		r.end = d.ending()
	}
	for range d.count() {
		r.stamps = append(r.stamps, d.stamp())
	}
	if counts {
		r.limits = d.shares()
		if claimed {
			r.claim.limits = d.shares()
		}
	}
	if precise {
		r.exact = exact{d.micros(), d.micros()}
	}
	if grouped {
		r.group = string(d.bytes())
	}
	if d.err == nil && len(d.in) > 0 {
		d.err = fmt.Errorf("%d bytes follow its end", len(d.in))
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

type writer struct{ out []byte }

func (w *writer) raw(b []byte)  { w.out = append(w.out, b...) }
func (w *writer) uint(n uint64) { w.out = binary.AppendUvarint(w.out, n) }
func (w *writer) int(n int64)   { w.out = binary.AppendVarint(w.out, n) }

// bytes writes b so that nil stays nil.
func (w *writer) bytes(b []byte) {
	if b == nil {
		w.uint(0)
		return
	}
	w.uint(uint64(len(b)) + 1)
	w.raw(b)
}

func (w *writer) flags(list ...bool) {
	var bits byte
	for i, set := range list {
		if set {
			bits |= 1 << i
		}
	}
	w.out = append(w.out, bits)
}

func (w *writer) token(t job.Token) {
	w.uint(t.Generation)
	w.uint(t.Epoch)
	w.raw(t.Nonce[:])
}

func (w *writer) claim(c *claim) {
	if c == nil {
		return
	}
	above := c.token.Epoch == 0 && c.base != 0 // else the token says it
	w.flags(c.noExpiry, c.session, above, c.exact != 0)
	w.bytes([]byte(c.owner))
	w.token(c.token)
	w.int(int64(c.lease))
	w.int(c.since)
	if above {
		w.uint(c.base)
	}
	if c.exact != 0 {
		w.uint(uint64(c.exact))
	}
}

func (w *writer) ending(e *ending) {
	if e == nil {
		return
	}
	w.flags(e.stamped, e.kept)
	w.out = append(w.out, byte(e.outcome))
	w.int(e.at)
	w.token(e.token)
	w.int(e.until)
	w.bytes(e.data)
	w.bytes(e.details)
}

func (w *writer) stamp(s *stamp) {
	w.raw(s.key[:])
	w.out = append(w.out, byte(s.kind), byte(s.must), byte(s.outcome))
	w.token(s.token)
	w.uint(s.version)
	w.uint(s.position)
	w.int(s.at)
	w.int(s.notBefore)
}

func (w *writer) shares(list transition.Moves) {
	w.uint(uint64(len(list)))
	for _, s := range list {
		w.bytes([]byte(s.Key))
		w.int(s.By)
	}
}

// A reader goes through a record; after an error it returns zeros.
type reader struct {
	in  []byte
	err error
}

func (d *reader) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.in = nil
}

func (d *reader) take(n uint64) []byte {
	if n > uint64(len(d.in)) {
		d.fail(errShort)
		return nil
	}
	b := d.in[:n:n]
	d.in = d.in[n:]
	return b
}

func (d *reader) raw(into []byte) { copy(into, d.take(uint64(len(into)))) }

func (d *reader) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *reader) uint() uint64 {
	n, size := binary.Uvarint(d.in)
	if size <= 0 {
		d.fail(errShort)
		return 0
	}
	d.in = d.in[size:]
	return n
}

func (d *reader) int() int64 {
	n, size := binary.Varint(d.in)
	if size <= 0 {
		d.fail(errShort)
		return 0
	}
	d.in = d.in[size:]
	return n
}

func (d *reader) within(least, most int64) int64 {
	n := d.int()
	if n < least || n > most {
		d.fail(fmt.Errorf("a number is %d: want %d to %d", n, least, most))
		return 0
	}
	return n
}

// micros reads a part of a millisecond.
func (d *reader) micros() uint16 {
	n := d.uint()
	if n >= 1000 {
		d.fail(fmt.Errorf("%d microseconds are left of a millisecond: want less than 1000", n))
		return 0
	}
	return uint16(n)
}

// count reads how many things follow, each of at least a byte.
func (d *reader) count() uint64 {
	n := d.uint()
	if n > uint64(len(d.in)) {
		d.fail(errShort)
		return 0
	}
	return n
}

func (d *reader) bytes() []byte {
	if n := d.uint(); n > 0 {
		return d.take(n - 1)
	}
	return nil
}

func (d *reader) flags(list ...*bool) {
	bits := d.byte()
	for i, set := range list {
		*set = bits&(1<<i) != 0
	}
}

func (d *reader) token() (t job.Token) {
	t.Generation, t.Epoch = d.uint(), d.uint()
	d.raw(t.Nonce[:])
	return t
}

func (d *reader) claim() *claim {
	c := &claim{}
	var above, exact bool
	d.flags(&c.noExpiry, &c.session, &above, &exact)
	c.owner, c.token, c.lease, c.since = string(d.bytes()), d.token(), time.Duration(d.int()), d.int()
	if above {
		c.base = d.uint()
	}
	if exact {
		c.exact = d.micros()
	}
	return c
}

func (d *reader) ending() *ending {
	e := &ending{}
	d.flags(&e.stamped, &e.kept)
	e.outcome, e.at, e.token = job.Outcome(d.byte()), d.int(), d.token()
	e.until, e.data, e.details = d.int(), d.bytes(), d.bytes()
	return e
}

func (d *reader) stamp() (s stamp) {
	d.raw(s.key[:])
	s.kind, s.must, s.outcome = driver.OpKind(d.byte()), driver.Precondition(d.byte()), job.Outcome(d.byte())
	s.token, s.version, s.position = d.token(), d.uint(), d.uint()
	s.at, s.notBefore = d.int(), d.int()
	return s
}

func (d *reader) shares() (list transition.Moves) {
	for range d.count() {
		list = append(list, transition.Move{Key: string(d.bytes()), By: d.int()})
	}
	return list
}
