package wirejson

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// encoder appends the JSON form of messages to buf.
type encoder struct {
	buf   []byte
	place place
}

func (e *encoder) errorf(format string, args ...any) error {
	return &Error{Path: e.place.String(), Problem: fmt.Sprintf(format, args...)}
}

func (e *encoder) message(p *plan, m protoreflect.Message) error {
	e.buf = append(e.buf, '{')
	first := true
	var given protoreflect.List
	if p.only != nil {
		given = m.Get(p.only.desc).List()
	}
	for _, f := range p.fields {
		if f.presence && !m.Has(f.desc) || !isGiven(given, f.name) || f.asked && !m.Has(f.desc) && (given == nil || given.Len() == 0) {
			continue
		}
		if !first {
			e.buf = append(e.buf, ',')
		}
		first = false
		e.buf = append(e.buf, f.key...)
		e.place = append(e.place, step{name: f.name})
		if err := e.field(f, m.Get(f.desc)); err != nil {
			return err
		}
		e.place = e.place[:len(e.place)-1]
	}
	e.buf = append(e.buf, '}')
	return nil
}

// isGiven reports whether a field is to be written: where no list says which
// are given, all are.
func isGiven(given protoreflect.List, name string) bool {
	if given == nil || given.Len() == 0 {
		return true
	}
	for i := range given.Len() {
		if given.Get(i).String() == name {
			return true
		}
	}
	return false
}

func (e *encoder) field(f *field, v protoreflect.Value) error {
	switch {
	case f.list:
		return e.list(f, v.List())
	case f.entries != nil:
		return e.mapping(f, v.Map())
	default:
		return e.value(f, v)
	}
}

func (e *encoder) list(f *field, list protoreflect.List) error {
	e.buf = append(e.buf, '[')
	for i := range list.Len() {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.place = append(e.place, step{kind: inList, index: i})
		if err := e.value(f, list.Get(i)); err != nil {
			return err
		}
		e.place = e.place[:len(e.place)-1]
	}
	e.buf = append(e.buf, ']')
	return nil
}

// mapping writes the entries in the order of their keys as texts, so that equal
// messages have equal texts.
func (e *encoder) mapping(f *field, m protoreflect.Map) error {
	if m.Len() == 0 {
		e.buf = append(e.buf, '{', '}')
		return nil
	}
	keys := make([]protoreflect.MapKey, 0, m.Len())
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int {
		switch x, y := a.String(), b.String(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	e.buf = append(e.buf, '{')
	for i, k := range keys {
		if i > 0 {
			e.buf = append(e.buf, ',')
		}
		e.place = append(e.place, step{kind: inMap, name: k.String()})
		if err := e.text(k.String()); err != nil {
			return err
		}
		e.buf = append(e.buf, ':')
		if err := e.value(f, m.Get(k)); err != nil {
			return err
		}
		e.place = e.place[:len(e.place)-1]
	}
	e.buf = append(e.buf, '}')
	return nil
}

func (e *encoder) value(f *field, v protoreflect.Value) error {
	switch f.form {
	case boolForm:
		e.buf = strconv.AppendBool(e.buf, v.Bool())
	case int32Form:
		e.buf = strconv.AppendInt(e.buf, v.Int(), 10)
	case uint32Form:
		e.buf = strconv.AppendUint(e.buf, v.Uint(), 10)
	case int64Form:
		e.buf = append(strconv.AppendInt(append(e.buf, '"'), v.Int(), 10), '"')
	case uint64Form:
		e.buf = append(strconv.AppendUint(append(e.buf, '"'), v.Uint(), 10), '"')
	case floatForm:
		e.float(v.Float(), 32)
	case doubleForm:
		e.float(v.Float(), 64)
	case stringForm:
		return e.text(v.String())
	case bytesForm:
		e.buf = append(e.buf, '"')
		e.buf = base64.StdEncoding.AppendEncode(e.buf, v.Bytes())
		e.buf = append(e.buf, '"')
	case rawForm:
		return e.raw(v.Bytes())
	case enumForm:
		e.enum(f.enum, v.Enum())
	case messageForm:
		return e.message(f.message, v.Message())
	case timestampForm:
		return e.timestamp(v.Message())
	case durationForm:
		return e.duration(v.Message())
	case maskForm:
		return e.fieldMask(v.Message())
	}
	return nil
}

// enum writes a number that has no name as a number; a lenient reader takes it.
func (e *encoder) enum(names *enum, n protoreflect.EnumNumber) {
	if name, ok := names.byNumber[n]; ok {
		e.buf = append(e.buf, '"')
		e.buf = append(e.buf, name...)
		e.buf = append(e.buf, '"')
		return
	}
	e.buf = strconv.AppendInt(e.buf, int64(n), 10)
}

// float writes what JSON numbers cannot say as text, as proto3 JSON does.
func (e *encoder) float(v float64, bits int) {
	switch {
	case math.IsNaN(v):
		e.buf = append(e.buf, `"NaN"`...)
	case math.IsInf(v, 1):
		e.buf = append(e.buf, `"Infinity"`...)
	case math.IsInf(v, -1):
		e.buf = append(e.buf, `"-Infinity"`...)
	default:
		e.buf = strconv.AppendFloat(e.buf, v, 'g', -1, bits)
	}
}

// raw splices JSON in. No bytes at all are the JSON null.
func (e *encoder) raw(text []byte) error {
	if len(text) == 0 {
		e.buf = append(e.buf, "null"...)
		return nil
	}
	s := scanner{text: text}
	if err := s.whole(MaxRawNesting); err != nil {
		return e.errorf("the field is not valid JSON: %s", err.describe(text))
	}
	e.buf = append(e.buf, text...)
	return nil
}

const hexDigits = "0123456789abcdef"

// plain tells the ASCII characters that stand for themselves in a JSON string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := range t {
		t[c] = c >= 0x20 && c != '"' && c != '\\'
	}
	return t
}()

func (e *encoder) text(s string) error {
	buf := append(e.buf, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			buf = append(buf, s[start:i]...)
			buf = appendEscape(buf, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return e.errorf("the text is not valid UTF-8 (at byte %d)", i)
		}
		i += size
	}
	e.buf = append(append(buf, s[start:]...), '"')
	return nil
}

func appendEscape(buf []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(buf, '\\', c)
	case '\n':
		return append(buf, '\\', 'n')
	case '\r':
		return append(buf, '\\', 'r')
	case '\t':
		return append(buf, '\\', 't')
	}
	return append(buf, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
