package wirejson

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The ranges of google.protobuf.Timestamp (years 1 to 9999) and Duration, in
// seconds.
const (
	minTime     = -62135596800
	maxTime     = 253402300799
	maxDuration = 315576000000
)

// secondsAndNanos reads the two fields that both well-known types have.
func secondsAndNanos(m protoreflect.Message) (seconds int64, nanos int32) {
	switch t := m.Interface().(type) {
	case *timestamppb.Timestamp:
		return t.GetSeconds(), t.GetNanos()
	case *durationpb.Duration:
		return t.GetSeconds(), t.GetNanos()
	}
	fields := m.Descriptor().Fields()
	return m.Get(fields.ByNumber(1)).Int(), int32(m.Get(fields.ByNumber(2)).Int())
}

func setSecondsAndNanos(m protoreflect.Message, seconds int64, nanos int32) {
	switch t := m.Interface().(type) {
	case *timestamppb.Timestamp:
		t.Seconds, t.Nanos = seconds, nanos
		return
	case *durationpb.Duration:
		t.Seconds, t.Nanos = seconds, nanos
		return
	}
	fields := m.Descriptor().Fields()
	m.Set(fields.ByNumber(1), protoreflect.ValueOfInt64(seconds))
	m.Set(fields.ByNumber(2), protoreflect.ValueOfInt32(nanos))
}

func (e *encoder) timestamp(m protoreflect.Message) error {
	seconds, nanos := secondsAndNanos(m)
	if seconds < minTime || seconds > maxTime || nanos < 0 || nanos >= 1e9 {
		return e.errorf("%d s and %d ns is no time from the year 1 to 9999", seconds, nanos)
	}
	e.buf = append(e.buf, '"')
	e.buf = time.Unix(seconds, int64(nanos)).UTC().AppendFormat(e.buf, time.RFC3339Nano)
	e.buf = append(e.buf, '"')
	return nil
}

func (e *encoder) duration(m protoreflect.Message) error {
	seconds, nanos := secondsAndNanos(m)
	negative := seconds < 0 || nanos < 0
	if seconds < -maxDuration || seconds > maxDuration || nanos <= -1e9 || nanos >= 1e9 || negative && (seconds > 0 || nanos > 0) {
		return e.errorf("%d s and %d ns is no duration", seconds, nanos)
	}
	e.buf = append(e.buf, '"')
	if negative {
		e.buf = append(e.buf, '-')
		seconds, nanos = -seconds, -nanos
	}
	e.buf = strconv.AppendInt(e.buf, seconds, 10)
	if nanos > 0 {
		fraction := strconv.Itoa(1e9 + int(nanos))[1:]
		e.buf = append(e.buf, '.')
		e.buf = append(e.buf, strings.TrimRight(fraction, "0")...)
	}
	e.buf = append(e.buf, 's', '"')
	return nil
}

func (d *decoder) timestamp(m protoreflect.Message) error {
	const wanted = `a time such as "2026-01-02T15:04:05Z"`
	text, start, err := d.shortText(wanted)
	if err != nil {
		return err
	}
	t, parseErr := time.Parse(time.RFC3339Nano, text)
	// Go takes a comma and fewer digits too.
	if parseErr != nil || len(text) < len("2006-01-02T15:04:05Z") || strings.Contains(text, ",") || t.Unix() < minTime || t.Unix() > maxTime {
		d.pos = start
		return d.wanted(wanted)
	}
	setSecondsAndNanos(m, t.Unix(), int32(t.Nanosecond()))
	return nil
}

func (d *decoder) duration(m protoreflect.Message) error {
	const wanted = `seconds such as "300s" or "0.5s"`
	text, start, err := d.shortText(wanted)
	if err != nil {
		return err
	}
	seconds, nanos, ok := parseSeconds(text)
	if !ok {
		d.pos = start
		return d.wanted(wanted)
	}
	setSecondsAndNanos(m, seconds, nanos)
	return nil
}

func (d *decoder) shortText(wanted string) (text string, start int, _ error) {
	d.space()
	start = d.pos
	if d.peek() != '"' {
		return "", start, d.wanted(wanted)
	}
	inside, err := d.string()
	return string(inside), start, err
}

// parseSeconds reads an optional sign, digits, at most nine digits of a
// fraction, and an s.
func parseSeconds(text string) (seconds int64, nanos int32, ok bool) {
	text, ok = strings.CutSuffix(text, "s")
	if !ok {
		return 0, 0, false
	}
	text, negative := strings.CutPrefix(text, "-")
	whole, fraction, dotted := strings.Cut(text, ".")
	if !isDigits(whole, 12) || dotted && !isDigits(fraction, 9) {
		return 0, 0, false
	}
	seconds, _ = strconv.ParseInt(whole, 10, 64)
	n, _ := strconv.ParseInt((fraction + "000000000")[:9], 10, 32)
	nanos = int32(n)
	if seconds > maxDuration || seconds == maxDuration && nanos > 0 {
		return 0, 0, false
	}
	if negative {
		seconds, nanos = -seconds, -nanos
	}
	return seconds, nanos, true
}

func isDigits(s string, most int) bool {
	if s == "" || len(s) > most {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}
