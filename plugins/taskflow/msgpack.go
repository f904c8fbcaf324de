package taskflow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// kind says what a msgpack value is.
type kind uint8

const (
	kindNil kind = iota
	kindBool
	kindInt   // below zero
	kindUint  // zero and above
	kindFloat // of either width
	kindStr
	kindBin
	kindArray
	kindMap
	kindExt
)

var kindNames = [...]string{"nil", "a truth value", "a number below 0", "a number", "a float", "text", "bytes", "a list", "a map", "an extension"}

func (k kind) String() string { return kindNames[k] }

// value is one msgpack value, or the head of a list or a map.
type value struct {
	kind kind
	bits uint64 // the number, two's complement; a float's bits; 1 for true; the length of a list or a map
	code int8   // of an extension
	body []byte // of text, bytes and extensions: a slice of what is read
}

func (v value) float() float64 { return math.Float64frombits(v.bits) }

// A reader goes through msgpack from front to back. The msgpack library decodes
// into Go's values and copies; this keeps to slices of the bytes at hand.
type reader struct {
	data []byte
	at   int
}

var errShort = errors.New("it ends in the middle of a value")

// next reads one value: of a list or a map, its head only.
func (r *reader) next() (value, error) {
	if r.at >= len(r.data) {
		return value{}, errShort
	}
	c := r.data[r.at]
	r.at++
	switch {
	case c <= msgpcode.PosFixedNumHigh:
		return value{kind: kindUint, bits: uint64(c)}, nil
	case c >= msgpcode.NegFixedNumLow:
		return value{kind: kindInt, bits: uint64(int64(int8(c)))}, nil
	case c <= msgpcode.FixedMapHigh:
		return r.head(kindMap, uint64(c&msgpcode.FixedMapMask))
	case c <= msgpcode.FixedArrayHigh:
		return r.head(kindArray, uint64(c&msgpcode.FixedArrayMask))
	case c <= msgpcode.FixedStrHigh:
		return r.body(kindStr, uint64(c&msgpcode.FixedStrMask))
	}
	f := formats[c-msgpcode.Nil]
	n, err := r.number(f.width)
	if err != nil {
		return value{}, err
	}
	switch f.kind {
	case kindInt:
		return signed(n, f.width), nil
	case kindFloat:
		if f.width == 4 {
			n = math.Float64bits(float64(math.Float32frombits(uint32(n))))
		}
		return value{kind: kindFloat, bits: n}, nil
	case kindNil:
		if c != msgpcode.Nil {
			return value{}, fmt.Errorf("byte 0x%02x begins no value", c)
		}
		return value{}, nil
	case kindStr, kindBin:
		return r.body(f.kind, n)
	case kindArray, kindMap:
		return r.head(f.kind, n)
	case kindExt:
		return r.extension(n + f.fixed)
	default: // kindBool, kindUint
		return value{kind: f.kind, bits: n + f.fixed}, nil
	}
}

// formats are the values whose first byte is 0xc0 to 0xdf: what they are, how
// many bytes of number follow, and what is added to it.
var formats = [32]struct {
	kind  kind
	width int
	fixed uint64
}{
	{kind: kindNil},
	{kind: kindNil},
	{kind: kindBool},
	{kind: kindBool, fixed: 1},
	{kind: kindBin, width: 1},
	{kind: kindBin, width: 2},
	{kind: kindBin, width: 4},
	{kind: kindExt, width: 1},
	{kind: kindExt, width: 2},
	{kind: kindExt, width: 4},
	{kind: kindFloat, width: 4},
	{kind: kindFloat, width: 8},
	{kind: kindUint, width: 1},
	{kind: kindUint, width: 2},
	{kind: kindUint, width: 4},
	{kind: kindUint, width: 8},
	{kind: kindInt, width: 1},
	{kind: kindInt, width: 2},
	{kind: kindInt, width: 4},
	{kind: kindInt, width: 8},
	{kind: kindExt, fixed: 1},
	{kind: kindExt, fixed: 2},
	{kind: kindExt, fixed: 4},
	{kind: kindExt, fixed: 8},
	{kind: kindExt, fixed: 16},
	{kind: kindStr, width: 1},
	{kind: kindStr, width: 2},
	{kind: kindStr, width: 4},
	{kind: kindArray, width: 2},
	{kind: kindArray, width: 4},
	{kind: kindMap, width: 2},
	{kind: kindMap, width: 4},
}

// signed makes a value of a two's complement number of some bytes.
func signed(n uint64, width int) value {
	shift := 64 - 8*width
	i := int64(n<<shift) >> shift
	if i < 0 {
		return value{kind: kindInt, bits: uint64(i)}
	}
	return value{kind: kindUint, bits: uint64(i)}
}

func (r *reader) take(n uint64) ([]byte, error) {
	if n > uint64(len(r.data)-r.at) {
		return nil, errShort
	}
	b := r.data[r.at : r.at+int(n) : r.at+int(n)]
	r.at += int(n)
	return b, nil
}

func (r *reader) number(width int) (uint64, error) {
	b, err := r.take(uint64(width))
	if err != nil {
		return 0, err
	}
	var wide [8]byte
	copy(wide[8-width:], b)
	return binary.BigEndian.Uint64(wide[:]), nil
}

func (r *reader) body(k kind, n uint64) (value, error) {
	b, err := r.take(n)
	return value{kind: k, body: b}, err
}

func (r *reader) extension(n uint64) (value, error) {
	code, err := r.number(1)
	if err != nil {
		return value{}, err
	}
	b, err := r.take(n)
	return value{kind: kindExt, code: int8(code), body: b}, err
}

// head refuses a length that the bytes that follow cannot hold, so that nobody
// counts to it.
func (r *reader) head(k kind, n uint64) (value, error) {
	least := n
	if k == kindMap {
		least = 2 * n
	}
	if least > uint64(len(r.data)-r.at) {
		return value{}, errShort
	}
	return value{kind: k, bits: n}, nil
}

// key reads a map's key, which has to be text or bytes: TaskFlow's reader is
// strict about it, though its writer is not.
func (r *reader) key() (value, error) {
	v, err := r.next()
	switch {
	case err != nil:
		return v, err
	case v.kind == kindBin, v.kind == kindStr && utf8.Valid(v.body):
		return v, nil
	case v.kind == kindStr:
		return v, errors.New("a key is not UTF-8")
	}
	return v, fmt.Errorf("a key is %v: TaskFlow reads text and bytes only", v.kind)
}

// walk goes over one value with everything in it and finds what TaskFlow's
// reader would fail over. It reports whether Python could put the value into a
// set. depth counts the levels of maps and lists around it, and in them.
func (r *reader) walk(depth int) (hashable bool, err error) {
	v, err := r.next()
	if err != nil {
		return false, err
	}
	if depth >= MaxNesting && (v.kind == kindArray || v.kind == kindMap || v.kind == kindExt) {
		return false, fmt.Errorf("it is nested too deep: want at most %d levels", MaxNesting)
	}
	switch v.kind {
	case kindStr:
		if !utf8.Valid(v.body) {
			return false, errors.New("text is not UTF-8")
		}
	case kindArray:
		for i := range v.bits {
			if _, err := r.walk(depth + 1); err != nil {
				return false, within("["+strconv.FormatUint(i, 10)+"]", err)
			}
		}
		return false, nil
	case kindMap:
		for range v.bits {
			k, err := r.key()
			if err != nil {
				return false, err
			}
			if _, err := r.walk(depth + 1); err != nil {
				return false, within("."+clip(string(k.body)), err)
			}
		}
		return false, nil
	case kindExt:
		return checkExtension(v, depth+1)
	}
	return true, nil
}

// raw goes over one value and returns its bytes.
func (r *reader) raw(depth int) ([]byte, error) {
	start := r.at
	_, err := r.walk(depth)
	return r.data[start:r.at:r.at], err
}

// misplaced is a problem with the place where it was found.
type misplaced struct {
	path    string
	problem error
}

func (m *misplaced) Error() string { return m.path + ": " + m.problem.Error() }

// within puts one more step before the place of a problem. A path that grows
// long keeps its end.
func within(step string, err error) error {
	const most = 256
	m, ok := err.(*misplaced) //nolint:errorlint // within makes it and nobody wraps it
	switch {
	case !ok:
		return &misplaced{path: step, problem: err}
	case len(m.path) < most:
		m.path = step + m.path
	}
	return m
}
