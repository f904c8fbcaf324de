package wire

import (
	"encoding/binary"
	"slices"
	"time"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// How a value is written.
const (
	inVarint = uint64(protowire.VarintType)
	inFixed  = uint64(protowire.Fixed64Type)
	inBytes  = uint64(protowire.BytesType)
)

// A writer appends fields to a message; a number or text that is zero is left out.
type writer struct{ b []byte }

func (w *writer) number(tag, n uint64) {
	if n != 0 {
		w.b = protowire.AppendVarint(protowire.AppendVarint(w.b, tag), n)
	}
}

func (w *writer) flag(tag uint64, set bool) {
	if set {
		w.number(tag, 1)
	}
}

func (w *writer) time(tag uint64, t time.Time) {
	if n := Nanos(t); n != 0 {
		w.b = binary.LittleEndian.AppendUint64(protowire.AppendVarint(w.b, tag), uint64(n))
	}
}

func (w *writer) text(tag uint64, s string) {
	if s != "" {
		w.b = protowire.AppendString(protowire.AppendVarint(w.b, tag), s)
	}
}

// bytes writes bytes that are not nil, even if there are none.
func (w *writer) bytes(tag uint64, data []byte) {
	if data != nil {
		w.b = protowire.AppendBytes(protowire.AppendVarint(w.b, tag), data)
	}
}

func (w *writer) id(tag uint64, id *[16]byte) {
	if *id != [16]byte{} {
		w.bytes(tag, id[:])
	}
}

// open begins a message within the message, and leaves room for its length, which
// most need no more than two bytes for. close ends it.
func (w *writer) open(tag uint64) (begin int) {
	w.b = append(protowire.AppendVarint(w.b, tag), 0, 0)
	return len(w.b)
}

func (w *writer) close(begin int) {
	n := uint64(len(w.b) - begin)
	length := protowire.SizeVarint(n)
	if length != 2 {
		w.b = slices.Replace(w.b, begin-2, begin, make([]byte, length)...)
	}
	protowire.AppendVarint(w.b[:begin-2], n)
}

// fields goes through the fields of a message.
type fields struct {
	rest []byte
	err  error

	tag   uint64 // of the present one: eight times its number and how it is written
	value uint64 // of a number
	bytes []byte // of what has a length
}

// next reads the next field; false: that was the last one, or err says what is
// wrong.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	tag, n := protowire.ConsumeVarint(f.rest)
	if n < 0 {
		f.err = protowire.ParseError(n)
		return false
	}
	f.tag, f.rest = tag, f.rest[n:]
	number, kind := protowire.DecodeTag(tag)
	switch {
	case number < protowire.MinValidNumber:
		f.err = protowire.ParseError(-2)
		return false
	case kind == protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(f.rest)
	case kind == protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(f.rest)
	case kind == protowire.Fixed64Type:
		f.value, n = protowire.ConsumeFixed64(f.rest)
	default: // a field of a newer protocol
		n = protowire.ConsumeFieldValue(number, kind, f.rest)
	}
	if n < 0 {
		f.err = protowire.ParseError(n)
		return false
	}
	f.rest = f.rest[n:]
	return true
}

// count returns how many fields of a message have a tag.
func count(message []byte, tag uint64) (n int) {
	for f := (fields{rest: message}); f.next(); {
		if f.tag == tag {
			n++
		}
	}
	return n
}

// present returns bytes that share the message's, without room to append to.
func (f *fields) present() []byte { return slices.Clip(f.bytes) }

// text returns a text that shares the message's bytes, which nobody changes.
func (f *fields) text() string { return unsafe.String(unsafe.SliceData(f.bytes), len(f.bytes)) }

// whole takes it for an error that not all of a message could be read.
func (r *reader) whole(f *fields) {
	if f.err != nil {
		r.fail("a message cannot be read: %v", f.err)
	}
}
