package guest

import (
	"math"
	"unsafe"

	"github.com/boardd/boardd/sdk/policy/abi"
)

// Cell is the value of a fact or a parameter. Its methods report false where it
// is absent or of another type.
type Cell struct {
	*view

	head *[abi.CellSize]byte // nil: absent
}

func (c Cell) tag() abi.Tag {
	if c.head == nil {
		return abi.Absent
	}
	return abi.Tag(c.head[abi.CTag])
}

func (c Cell) number(tag abi.Tag) (int64, bool) {
	if c.tag() != tag {
		return 0, false
	}
	return int64(get64(c.head[:], abi.CValue)), true
}

// Present reports whether there is a value.
func (c Cell) Present() bool { return c.tag() != abi.Absent }

// Int returns a whole number.
func (c Cell) Int() (int64, bool) { return c.number(abi.Int) }

// Time returns a time, in ns since 1970.
func (c Cell) Time() (int64, bool) { return c.number(abi.Time) }

// Duration returns a duration in ns.
func (c Cell) Duration() (int64, bool) { return c.number(abi.Duration) }

// Bool returns a yes or no.
func (c Cell) Bool() (value, ok bool) {
	n, ok := c.number(abi.Bool)
	return n != 0, ok
}

// Float returns a number.
func (c Cell) Float() (float64, bool) {
	n, ok := c.number(abi.Float)
	return math.Float64frombits(uint64(n)), ok
}

// area returns where the cell's data begins, and its length field.
func (c Cell) area(tag abi.Tag) (at, n int, ok bool) {
	if c.tag() != tag {
		return 0, 0, false
	}
	return int(uint32(get64(c.head[:], abi.CValue))), int(get32(c.head[:], abi.CLength)), true
}

// Text returns a text.
func (c Cell) Text() (string, bool) {
	at, n, ok := c.area(abi.String)
	if !ok {
		return "", false
	}
	return c.text(at, n), true
}

// Len returns how many items a list has; 0 for everything else.
func (c Cell) Len() int {
	_, n, _ := c.area(abi.List)
	return n
}

// Item returns an item of a list.
func (c Cell) Item(i int) string {
	at, n, _ := c.area(abi.List)
	if i < 0 || i >= n {
		return ""
	}
	return c.text(int(get32(c.mem, at+8*i)), int(get32(c.mem, at+8*i+4)))
}

// Find returns what a map has under a key.
func (c Cell) Find(key string) (string, bool) {
	at, n, ok := c.area(abi.Map)
	if !ok {
		return "", false
	}
	return c.find(uint64(at)|uint64(n)<<32, key)
}

// Each calls visit for the entries of a map, in the order of their keys, until
// it returns false.
func (c Cell) Each(visit func(key, value string) bool) { c.entries().each(visit) }

func (c Cell) entries() table {
	at, n, ok := c.area(abi.Map)
	if !ok {
		return nil
	}
	return c.table(at, n)
}

// Offset returns how many seconds east of UTC a zone is at a time, given in ns
// since 1970.
func (c Cell) Offset(at int64) (int64, bool) {
	from, n, ok := c.area(abi.Zone)
	if !ok || n == 0 {
		return 0, false
	}
	low, high := 0, n // the last step that is not after at
	for low+1 < high {
		if mid := (low + high) / 2; int64(get64(c.mem, from+16*mid)) <= at {
			low = mid
		} else {
			high = mid
		}
	}
	return int64(get64(c.mem, from+16*low+8)), true
}

// table is a list of labels, sorted by key: u16 and u16, the lengths of key and
// value, then both.
type table []byte

// entry returns the key and value of the entry at a place, and where the next one
// is; 0 if there is none.
func (t table) entry(at int) (key, value string, next int) {
	if at+4 > len(t) {
		return "", "", 0
	}
	both := get32(t, at)
	k, v := int(both&0xffff), int(both>>16)
	part := t[at+4 : at+4+k+v]
	whole := unsafe.String(unsafe.SliceData(part), len(part))
	return whole[:k], whole[k:], at + 4 + k + v
}

func (t table) each(visit func(key, value string) bool) {
	for at := 0; ; {
		k, v, next := t.entry(at)
		if next == 0 || !visit(k, v) {
			return
		}
		at = next
	}
}
