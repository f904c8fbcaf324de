package block

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// MaxParameters is the most bytes that the parameters of a policy may take in a
// block.
const MaxParameters = 64 << 10

// fact writes a cell; a value of another type than declared is absent.
func (w *writer) fact(cell []byte, t policy.FactType, v policy.Fact) {
	switch v := v.(type) {
	case int64:
		if t == policy.IntFact {
			putNumber(cell, abi.Int, uint64(v))
		}
	case float64:
		if t == policy.FloatFact && !math.IsNaN(v) {
			putNumber(cell, abi.Float, math.Float64bits(v))
		}
	case bool:
		if t == policy.BoolFact {
			putNumber(cell, abi.Bool, truth(v))
		}
	case string:
		if t == policy.StringFact {
			putArea(cell, abi.String, int(uint32(w.text(v))), len(v))
		}
	case time.Time:
		if t == policy.TimeFact {
			putNumber(cell, abi.Time, uint64(nanos(v)))
		}
	}
}

func truth(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

func putNumber(cell []byte, tag abi.Tag, v uint64) {
	cell[abi.CTag] = byte(tag)
	le.PutUint64(cell[abi.CValue:], v)
}

func putArea(cell []byte, tag abi.Tag, at, n int) {
	cell[abi.CTag] = byte(tag)
	le.PutUint32(cell[abi.CLength:], uint32(n))
	le.PutUint64(cell[abi.CValue:], uint64(at))
}

// parameters encodes the values of a policy's parameters, as they stand behind a
// block's header.
func parameters(values []policy.Value) ([]byte, error) {
	cells := make([]byte, len(values)*abi.CellSize)
	var b []byte // what cells point to, behind them
	for i, v := range values {
		cell := cells[i*abi.CellSize:]
		at := abi.HeaderSize + len(cells) + len(b)
		switch v := v.(type) {
		case nil:
		case int64:
			putNumber(cell, abi.Int, uint64(v))
		case float64:
			putNumber(cell, abi.Float, math.Float64bits(v))
		case bool:
			putNumber(cell, abi.Bool, truth(v))
		case time.Time:
			putNumber(cell, abi.Time, uint64(nanos(v)))
		case time.Duration:
			putNumber(cell, abi.Duration, uint64(v))
		case string:
			putArea(cell, abi.String, at, len(v))
			b = append(b, v...)
		case []string:
			putArea(cell, abi.List, at, len(v))
			b = appendList(b, at, v)
		case map[string]string:
			table := tableOf(v)
			putArea(cell, abi.Map, at, len(table))
			b = append(b, table...)
		case *time.Location:
			steps := zoneSteps(v)
			putArea(cell, abi.Zone, at, len(steps)/16)
			b = append(b, steps...)
		default:
			return nil, job.Errorf(job.Invalid, "parameter %d: a value of type %T has no form in a block", i, v)
		}
	}
	if n := len(cells) + len(b); n > MaxParameters {
		return nil, job.Errorf(job.Invalid, "the parameters take %d bytes: want at most %d", n, MaxParameters)
	}
	return slices.Concat(cells, b), nil
}

func appendList(b []byte, at int, items []string) []byte {
	at += 8 * len(items)
	for _, s := range items {
		b = le.AppendUint32(b, uint32(at))
		b = le.AppendUint32(b, uint32(len(s)))
		at += len(s)
	}
	for _, s := range items {
		b = append(b, s...)
	}
	return b
}

func tableOf(m map[string]string) (b []byte) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b = le.AppendUint16(b, uint16(len(k)))
		b = le.AppendUint16(b, uint16(len(m[k])))
		b = append(append(b, k...), m[k]...)
	}
	return b
}

// The years for which a zone's steps are given. Before and after, the first and
// last offset stand.
const (
	FirstZoneYear = 2020
	LastZoneYear  = 2060
)

// zoneSteps lists from when which offset holds. It looks at each day, since
// Time.ZoneBounds may end a zone before it begins in years that only a rule
// covers.
func zoneSteps(zone *time.Location) (b []byte) {
	const day = 24 * 60 * 60
	step := func(at int64) int {
		_, offset := time.Unix(at, 0).In(zone).Zone()
		b = le.AppendUint64(b, uint64(at*1e9))
		b = le.AppendUint64(b, uint64(int64(offset)))
		return offset
	}
	offsetAt := func(at int64) int {
		_, offset := time.Unix(at, 0).In(zone).Zone()
		return offset
	}
	first := time.Date(FirstZoneYear, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	last := time.Date(LastZoneYear+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	offset := step(first)
	for at := first; at < last; at += day {
		if offsetAt(at+day) != offset {
			second := sort.Search(day, func(i int) bool { return offsetAt(at+int64(i)) != offset })
			offset = step(at + int64(second))
		}
	}
	return b
}

// fit reports what is wrong with a value that no table holds.
func fit(name string, v policy.Value) error {
	m, _ := v.(map[string]string)
	for k, value := range m {
		if len(k) > math.MaxUint16 || len(value) > math.MaxUint16 {
			return job.Errorf(job.Invalid, "parameter %s: the entry %.40q has %d bytes: want at most %d", name, k, max(len(k), len(value)), math.MaxUint16)
		}
	}
	if f, ok := v.(float64); ok && math.IsNaN(f) {
		return fmt.Errorf("parameter %s: NaN is no number", name)
	}
	return nil
}
