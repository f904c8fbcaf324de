package chart

import (
	"encoding/binary"
	"errors"
	"math"
)

// The form of a ring in a store: a byte with its version; for each span how many points it
// has, and for each point how far its slot is from the one before, a byte that says which
// numbers are not zero, and these; then the receipts. All numbers are uvarints.
const ringVersion = 1

// MaxRing is more than the bytes of any ring.
const MaxRing = 32 << 10

var (
	errVersion = errors.New("chart: it was written by a later version of the program")
	errShort   = errors.New("chart: it ends too early")
	errLong    = errors.New("chart: something comes after its end")
	errRange   = errors.New("chart: a number is out of its range")
)

// Encode returns the ring as bytes, at most MaxRing of them.
func (r *Ring) Encode() []byte {
	out := []byte{ringVersion}
	for i := range r.points {
		out = binary.AppendUvarint(out, uint64(len(r.points[i])))
		last := int64(0)
		for j := range r.points[i] {
			p := &r.points[i][j]
			out = binary.AppendUvarint(out, uint64(p.slot-last)) //nolint:gosec // slots grow
			last = p.slot
			out = p.sample.encode(out)
		}
	}
	out = binary.AppendUvarint(out, uint64(len(r.receipts)))
	for _, s := range r.receipts {
		out = binary.AppendUvarint(out, s.Writer)
		out = binary.AppendUvarint(out, s.Number)
		out = binary.AppendUvarint(out, uint64(s.At)) //nolint:gosec // minutes since 1970
	}
	return out
}

func (s *Sample) encode(out []byte) []byte {
	mask := byte(0)
	for m, v := range s {
		if v != 0 {
			mask |= 1 << m
		}
	}
	out = append(out, mask)
	for _, v := range s {
		if v != 0 {
			out = binary.AppendUvarint(out, uint64(v)) //nolint:gosec // none is below zero
		}
	}
	return out
}

// Decode reads what Encode has written.
func Decode(data []byte) (*Ring, error) {
	d := decoder{rest: data}
	switch {
	case len(data) > MaxRing:
		return nil, errLong
	case len(data) == 0:
		return nil, errShort
	case data[0] != ringVersion:
		return nil, errVersion
	}
	d.rest = data[1:]
	r := &Ring{}
	for i, span := range spans {
		n := d.number(uint64(span.Steps)) //nolint:gosec // a small constant
		last := int64(0)
		for ; n > 0 && d.err == nil; n-- {
			step := int64(d.number(math.MaxInt32)) //nolint:gosec // bounded
			if step == 0 && d.err == nil {
				d.err = errRange
			}
			last += step
			r.points[i] = append(r.points[i], point{slot: last, sample: d.sample()})
		}
	}
	for n := d.number(maxReceipts); n > 0 && d.err == nil; n-- {
		s := Receipt{Writer: d.number(math.MaxUint64), Number: d.number(math.MaxUint64)}
		s.At = int64(d.number(math.MaxInt32)) //nolint:gosec // bounded
		r.receipts = append(r.receipts, s)
	}
	if d.err == nil && len(d.rest) > 0 {
		d.err = errLong
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

type decoder struct {
	rest []byte
	err  error
}

// number reads a number of at most so much.
func (d *decoder) number(most uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.rest)
	switch {
	case n <= 0:
		d.err = errShort
	case v > most:
		d.err = errRange
	default:
		d.rest = d.rest[n:]
		return v
	}
	return 0
}

func (d *decoder) sample() (s Sample) {
	if d.err != nil {
		return s
	}
	if len(d.rest) == 0 {
		d.err = errShort
		return s
	}
	mask := d.rest[0]
	if d.rest = d.rest[1:]; mask>>measures != 0 {
		d.err = errRange
	}
	for m := range s {
		if mask&(1<<m) != 0 {
			s[m] = int64(d.number(maxValue)) //nolint:gosec // bounded
		}
	}
	return s
}
