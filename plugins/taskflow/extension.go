package taskflow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // whether a zone's name is known must not depend on the machine

	"github.com/vmihailenco/msgpack/v5"
)

// The extension types of oslo.serialization's msgpack, and msgpack's own.
const (
	extUUID      = 0
	extDatetime  = 1
	extCount     = 2
	extAddress   = 3
	extSet       = 4
	extFrozenset = 5
	extXMLRPC    = 6
	extDate      = 7
	extTimestamp = -1
)

// checkExtension finds what TaskFlow's reader would fail over in an extension.
// A code that it does not know is handed through.
func checkExtension(v value, depth int) (hashable bool, err error) {
	switch v.code {
	case extUUID:
		return true, checkUUID(v.body)
	case extDatetime, extXMLRPC:
		_, err := readDatetime(v.body, depth)
		return v.code == extDatetime, err
	case extDate:
		_, _, err := readFields(v.body, depth, dateFields)
		return true, err
	case extCount:
		return true, checkCount(v.body)
	case extAddress:
		return true, checkAddress(v.body)
	case extSet, extFrozenset:
		return v.code == extFrozenset, checkSet(v.body, depth)
	case extTimestamp:
		return true, checkTimestamp(v.body)
	}
	if v.code < 0 {
		return false, fmt.Errorf("extension %d is unknown: TaskFlow reads -1 and 0 to 127", v.code)
	}
	return true, nil
}

func checkUUID(body []byte) error {
	digits := bytes.ReplaceAll(body, []byte("-"), nil)
	isHex := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F' }
	if len(digits) != 32 || bytes.ContainsFunc(digits, func(r rune) bool { return !isHex(r) }) {
		return errors.New("a uuid (extension 0) is not 32 hexadecimal digits")
	}
	return nil
}

// whole reads the payload of an extension that is one value.
func whole(body []byte, what string) (reader, value, error) {
	r := reader{data: body}
	v, err := r.next()
	if err != nil {
		return r, v, fmt.Errorf("%s: %w", what, err)
	}
	return r, v, nil
}

func checkCount(body []byte) error {
	r, v, err := whole(body, "a count (extension 2)")
	if err != nil {
		return err
	}
	for range v.bits {
		n, err := r.next()
		if err != nil || n.kind != kindInt && n.kind != kindUint && n.kind != kindFloat {
			return errors.New("a count (extension 2) is not of two numbers")
		}
		if v.kind != kindArray {
			break
		}
	}
	if v.kind != kindArray || v.bits != 2 || r.at != len(body) {
		return errors.New("a count (extension 2) is not of two numbers")
	}
	return nil
}

func checkAddress(body []byte) error {
	r, v, err := whole(body, "an address (extension 3)")
	if err != nil {
		return err
	}
	if v.kind != kindUint || r.at != len(body) {
		return errors.New("an address (extension 3) is not a number of 0 or more")
	}
	return nil
}

func checkSet(body []byte, depth int) error {
	r, v, err := whole(body, "a set (extension 4 or 5)")
	if err != nil {
		return err
	}
	if v.kind != kindArray {
		return fmt.Errorf("a set (extension 4 or 5) is %v: want a list", v.kind)
	}
	for range v.bits {
		hashable, err := r.walk(depth + 1)
		if err != nil {
			return err
		}
		if !hashable {
			return errors.New("a set (extension 4 or 5) holds something that Python cannot put into one")
		}
	}
	if r.at != len(body) {
		return errors.New("something follows the list of a set (extension 4 or 5)")
	}
	return nil
}

func checkTimestamp(body []byte) error {
	var nanoseconds uint64
	switch len(body) {
	case 4:
	case 8:
		nanoseconds = binary.BigEndian.Uint64(body) >> 34
	case 12:
		nanoseconds = uint64(binary.BigEndian.Uint32(body))
	default:
		return fmt.Errorf("a timestamp (extension -1) has %d bytes: want 4, 8 or 12", len(body))
	}
	if nanoseconds >= uint64(time.Second) {
		return errors.New("a timestamp (extension -1) has more nanoseconds than a second")
	}
	return nil
}

// dateFields and timeFields are what a date and a datetime must have, in the
// order that Python writes, with their bounds.
var (
	dateFields = []field{{"day", 1, 31}, {"month", 1, 12}, {"year", 1, 9999}}
	timeFields = append(dateFields[:3:3], field{"hour", 0, 23}, field{"minute", 0, 59}, field{"second", 0, 59}, field{"microsecond", 0, 999_999})
)

type field struct {
	name        string
	least, most int
}

// found are the fields of a datetime's map, and what else was of interest.
type found struct {
	at    [7]int // day, month, year, hour, minute, second, microsecond
	zone  *value // of the key tz; nil where there is none
	nonce []byte // of the key that boardd adds
}

// readFields reads the map of a date or a datetime. Keys that are bytes are
// Python 2's and read as well.
func readFields(body []byte, depth int, fields []field) (found, time.Time, error) {
	var f found
	r, head, err := whole(body, "a datetime")
	if err != nil {
		return f, time.Time{}, err
	}
	if head.kind != kindMap {
		return f, time.Time{}, fmt.Errorf("a datetime is %v: want a map", head.kind)
	}
	seen := 0
	for i := range head.bits {
		known, err := f.readOne(&r, depth, fields, int(i))
		if err != nil {
			return f, time.Time{}, fmt.Errorf("a datetime: %w", err)
		}
		seen |= known
	}
	if r.at != len(body) {
		return f, time.Time{}, errors.New("something follows the map of a datetime")
	}
	for i, want := range fields {
		if seen&(1<<i) == 0 {
			return f, time.Time{}, fmt.Errorf("a datetime has no %s", want.name)
		}
	}
	t := time.Date(f.at[2], time.Month(f.at[1]), f.at[0], f.at[3], f.at[4], f.at[5], f.at[6]*1000, time.UTC)
	if t.Day() != f.at[0] {
		return f, time.Time{}, fmt.Errorf("a datetime has day %d: month %d of %d has fewer", f.at[0], f.at[1], f.at[2])
	}
	return f, t, nil
}

// readOne reads one key with its value and returns the bit of its field. Python
// writes them in one order, so it is looked for at its place first.
func (f *found) readOne(r *reader, depth int, fields []field, place int) (int, error) {
	key, err := r.key()
	if err != nil {
		return 0, err
	}
	for n := range fields {
		i := (place + n) % len(fields)
		want := &fields[i]
		if string(key.body) != want.name {
			continue
		}
		v, err := r.next()
		if err != nil {
			return 0, err
		}
		if v.kind != kindUint || v.bits < uint64(want.least) || v.bits > uint64(want.most) {
			return 0, fmt.Errorf("%s is not a whole number from %d to %d", want.name, want.least, want.most)
		}
		f.at[i] = int(v.bits)
		return 1 << i, nil
	}
	start := r.at
	if _, err := r.walk(depth + 1); err != nil {
		return 0, err
	}
	v, _ := (&reader{data: r.data, at: start}).next() // walk has read it without an error
	switch string(key.body) {
	case "tz":
		f.zone = &v
	case nonceKey:
		if v.kind == kindBin {
			f.nonce = v.body
		}
	}
	return 0, nil
}

// readDatetime reads the payload of a datetime. One that names no zone is UTC:
// TaskFlow's own are.
func readDatetime(body []byte, depth int) (time.Time, error) {
	f, t, err := readFields(body, depth, timeFields)
	if err != nil || f.zone == nil {
		return t, err
	}
	name := string(f.zone.body)
	switch {
	case f.zone.kind != kindStr && f.zone.kind != kindBin || name == "" || name == "Local":
		return t, errors.New("a datetime's zone is not a name")
	case t.Year() < 2 || t.Year() > 9998:
		return t, fmt.Errorf("a datetime of year %d has a zone: Python cannot shift it", t.Year())
	case name == "utc":
		return t, nil
	}
	zone, err := zoneNamed(name)
	if err != nil {
		return t, fmt.Errorf("a datetime's zone is %q: Python knows no zone of that name, so TaskFlow could not read it back", clip(name))
	}
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone).UTC(), nil
}

// zones are those that were asked for. Loading one reads a file; there are a few
// hundred, and only those are kept.
var zones sync.Map // from name to *time.Location

func zoneNamed(name string) (*time.Location, error) {
	if zone, ok := zones.Load(name); ok {
		return zone.(*time.Location), nil //nolint:forcetypeassert // nothing else is put in
	}
	zone, err := time.LoadLocation(name)
	if err == nil {
		zones.Store(name, zone)
	}
	return zone, err
}

// writeDatetime appends a datetime without a zone, in UTC, and with a nonce if
// there is one. Parts of a microsecond are cut off.
func writeDatetime(e *msgpack.Encoder, t time.Time, nonce []byte) error {
	t = t.UTC()
	if t.Year() < 1 || t.Year() > 9999 {
		return invalid("the time %v is none that Python can hold: want a year from 1 to 9999", t)
	}
	var body bytes.Buffer
	payload := msgpack.NewEncoder(&body)
	n := len(timeFields)
	if nonce != nil {
		n++
	}
	_ = payload.EncodeMapLen(n) // a bytes.Buffer takes everything
	for i, v := range [...]int{t.Day(), int(t.Month()), t.Year(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond() / 1000} {
		_ = payload.EncodeString(timeFields[i].name)
		_ = payload.EncodeUint(uint64(v))
	}
	if nonce != nil {
		_ = payload.EncodeString(nonceKey)
		_ = payload.EncodeBytes(nonce)
	}
	_ = e.EncodeExtHeader(extDatetime, body.Len())
	_, err := e.Writer().Write(body.Bytes())
	return err
}
