package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"time"
)

// A kind of record. It is part of the checksum, so that a page of one bucket
// that turns up in another one is found out.
const (
	kindFormat byte = iota + 1
	kindState
	kindJob
	kindDetails
	kindAttached
	kindEnded
	kindAnswer
	kindChanges
	kindDocument
	kindBoot
	kindFloor
	kindKey
	kindGroup
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errChecksum = errors.New("its checksum is wrong")
	errShort    = errors.New("it ends too early")
)

const checksumSize = 4

// checksum covers where a record lies as well as what it says.
func checksum(kind byte, key, body []byte) uint32 {
	var head [1]byte
	head[0] = kind
	sum := crc32.Update(0, castagnoli, head[:])
	sum = crc32.Update(sum, castagnoli, key)
	return crc32.Update(sum, castagnoli, body)
}

// seal fills in the checksum at the front of value, whose body begins after it.
func seal(kind byte, key, value []byte) {
	binary.LittleEndian.PutUint32(value, checksum(kind, key, value[checksumSize:]))
}

// unseal returns the body of a value. It aliases value.
func unseal(kind byte, key, value []byte) ([]byte, error) {
	if len(value) < checksumSize {
		return nil, errShort
	}
	if binary.LittleEndian.Uint32(value) != checksum(kind, key, value[checksumSize:]) {
		return nil, errChecksum
	}
	return value[checksumSize:], nil
}

// uintKey is the key of everything that is kept by number: byte order is
// number order.
func uintKey(n uint64) []byte { return binary.BigEndian.AppendUint64(make([]byte, 0, 8), n) }

func keyUint(key []byte) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("its key has %d bytes, want 8", len(key))
	}
	return binary.BigEndian.Uint64(key), nil
}

func appendBytes[T string | []byte](b []byte, v T) []byte {
	b = binary.AppendUvarint(b, uint64(len(v)))
	return append(b, v...)
}

// noTime stands for the zero time.Time.
const noTime = math.MinInt64

func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return noTime
	case t.Year() >= 2262:
		return math.MaxInt64
	case t.Year() < 1678:
		return noTime + 1
	}
	return t.UnixNano()
}

func timeOf(n int64) time.Time {
	if n == noTime {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

func appendInt64(b []byte, n int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(n)) }

// reader takes a body apart. After a failed step all others give zeros, and err
// says why.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	if r.err == nil {
		r.err = errShort
	}
	r.b = nil
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) int64() int64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// bytes returns a field that aliases the body.
func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	return r.take(int(n))
}

func (r *reader) array16() (v [16]byte) {
	copy(v[:], r.take(16))
	return v
}

// count reads how many items follow, of at least size bytes each.
func (r *reader) count(size int) int {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.fail()
		return 0
	}
	return int(n)
}

// done reports what was wrong, a rest included.
func (r *reader) done() error {
	if r.err == nil && len(r.b) != 0 {
		return fmt.Errorf("it has %d bytes too many", len(r.b))
	}
	return r.err
}

// An arena hands out pieces of memory, many from one allocation. None is ever
// used again.
type arena struct{ chunk []byte }

const arenaChunk = 256 << 10

// room returns an empty slice with space for n bytes.
func (a *arena) room(n int) []byte {
	if cap(a.chunk)-len(a.chunk) < n {
		a.chunk = make([]byte, 0, max(arenaChunk, n))
	}
	at := len(a.chunk)
	return a.chunk[at:at:cap(a.chunk)]
}

// keep marks a slice that grew in the last room as taken, and returns it. One
// that outgrew the room lives by itself.
func (a *arena) keep(b []byte) []byte {
	at := len(a.chunk)
	if len(b) > 0 && cap(a.chunk)-at >= len(b) && &a.chunk[:at+1][at] == &b[0] {
		a.chunk = a.chunk[:at+len(b)]
	}
	return slices.Clip(b)
}
