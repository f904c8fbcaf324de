package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// format begins everything that is encoded. Another number is a later program's.
const format = 1

var errShort = errors.New("it ends too early")

// A writer encodes: numbers as varints, texts with their length before them.
type writer struct{ out []byte }

func newWriter(size int) *writer { return &writer{append(make([]byte, 0, size), format)} }

func (w *writer) raw(b []byte)     { w.out = append(w.out, b...) }
func (w *writer) byte(b byte)      { w.out = append(w.out, b) }
func (w *writer) uint(n uint64)    { w.out = binary.AppendUvarint(w.out, n) }
func (w *writer) int(n int64)      { w.out = binary.AppendVarint(w.out, n) }
func (w *writer) time(t time.Time) { w.int(nanos(t)) }

func (w *writer) text(s string) {
	w.uint(uint64(len(s)))
	w.out = append(w.out, s...)
}

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
	w.byte(bits)
}

func (w *writer) token(t job.Token) {
	w.uint(t.Generation)
	w.uint(t.Epoch)
	w.raw(t.Nonce[:])
}

// A reader goes through what a writer wrote, and shares its bytes; after an error it
// returns zeros.
type reader struct {
	in  []byte
	err error
}

func newReader(in []byte) *reader {
	d := &reader{in: in}
	if f := d.byte(); d.err == nil && f != format {
		d.fail(fmt.Errorf("it has format %d: this program reads %d", f, format))
	}
	return d
}

// end returns the first error; bytes that are left over are one.
func (d *reader) end() error {
	if d.err == nil && len(d.in) > 0 {
		d.fail(fmt.Errorf("%d bytes follow its end", len(d.in)))
	}
	return d.err
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

// upTo reads a byte that is a number of something.
func (d *reader) upTo(most byte) byte {
	b := d.byte()
	if b > most {
		d.fail(fmt.Errorf("a number is %d: want at most %d", b, most))
		return 0
	}
	return b
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

func (d *reader) time() time.Time { return fromNanos(d.int()) }

// count reads how many things follow, each of at least a byte.
func (d *reader) count() uint64 {
	n := d.uint()
	if n > uint64(len(d.in)) {
		d.fail(errShort)
		return 0
	}
	return n
}

func (d *reader) text() string { return string(d.take(d.uint())) }

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

// nanos is how a time is kept; 0 is the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}
