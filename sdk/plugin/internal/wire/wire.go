// Package wire turns the driver contract's types into the messages of
// driver.proto and back, without loss but for times, which are UTC and lie
// between the years 1678 and 2262. What comes from the other side is checked as
// far as a message by itself can be wrong: sizes of ids, unknown numbers for
// enums, negative amounts.
//
// Messages made here share byte slices with their source, and the other way
// round; neither may be changed while the other is in use. A message may itself
// share one buffer among its fields, so what is read of a record has no capacity
// to spare: to append to it makes a copy.
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Limits on messages, in bytes.
const (
	// MaxMessage is the size of the largest message that either side takes.
	MaxMessage = 16 << 20
	// PageSize is where a message is full and the next one begins.
	PageSize = 1 << 20
)

const tokenSize = 32

// The years 1678 to 2261 in UTC, in seconds since 1970: times that 64 bits of
// nanoseconds hold.
const (
	firstSecond = -9214560000
	endSecond   = 9214646400
)

// Nanos returns a time as it travels: 0 for the zero time.
func Nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case t.IsZero():
		return 0
	case s < firstSecond:
		return math.MinInt64
	case s >= endSecond:
		return math.MaxInt64
	}
	if n := t.UnixNano(); n != 0 {
		return n
	}
	return 1 // 0 means none, and nobody can tell the first nanosecond of 1970 from the second
}

// Time is the inverse of Nanos.
func Time(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func idBytes(id *job.ID) []byte {
	if *id == (job.ID{}) {
		return nil
	}
	return id[:]
}

func nonceBytes(n *[16]byte) []byte {
	if *n == ([16]byte{}) {
		return nil
	}
	return n[:]
}

func tokenBytes(t job.Token) []byte {
	if t.IsZero() {
		return nil
	}
	b := make([]byte, tokenSize)
	binary.BigEndian.PutUint64(b, t.Generation)
	binary.BigEndian.PutUint64(b[8:], t.Epoch)
	copy(b[16:], t.Nonce[:])
	return b
}

// present returns b, or empty bytes for nil, for a field whose absence would
// say something else.
func present(b *[]byte) []byte {
	switch {
	case b == nil:
		return nil
	case *b == nil:
		return []byte{}
	}
	return *b
}

// A reader decodes fields and keeps the first thing that is wrong.
type reader struct {
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) bytes16(b []byte, what string) (out [16]byte) {
	switch len(b) {
	case 0:
	case 16:
		copy(out[:], b)
	default:
		r.fail("%s has %d bytes, want 16", what, len(b))
	}
	return out
}

func (r *reader) token(b []byte) (t job.Token) {
	switch len(b) {
	case 0:
	case tokenSize:
		t.Generation = binary.BigEndian.Uint64(b)
		t.Epoch = binary.BigEndian.Uint64(b[8:])
		copy(t.Nonce[:], b[16:])
	default:
		r.fail("a token has %d bytes, want %d", len(b), tokenSize)
	}
	return t
}

func (r *reader) amount(n int64, what string) int64 {
	if n < 0 {
		r.fail("%s is %d, want 0 or more", what, n)
		return 0
	}
	return n
}

func (r *reader) enum(n int32, most int, what string) int32 {
	if n < 0 || int(n) > most {
		r.fail("%s is %d, want 0 to %d", what, n, most)
		return 0
	}
	return n
}

func (r *reader) kind(n int32) job.Kind {
	k := job.Kind(uint8(n))
	if n < 0 || n > math.MaxUint8 || k.String() == "INVALID_KIND" {
		r.fail("%d is not a kind of error", n)
		return job.NoKind
	}
	return k
}

func optional(b []byte) *[]byte {
	if b == nil {
		return nil
	}
	return &b
}
