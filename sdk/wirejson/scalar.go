package wirejson

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/sdk/nearest"
)

// scalarValue reads a value that is not a message. It is not valid where a
// lenient reader passes over it.
func (d *decoder) scalarValue(f *field) (protoreflect.Value, error) {
	switch f.form {
	case boolForm:
		return d.bool()
	case int32Form:
		n, err := d.integer(math.MinInt32, math.MaxInt32)
		return protoreflect.ValueOfInt32(int32(n)), err
	case uint32Form:
		n, err := d.integer(0, math.MaxUint32)
		return protoreflect.ValueOfUint32(uint32(n)), err
	case int64Form:
		n, err := d.integer(math.MinInt64, math.MaxInt64)
		return protoreflect.ValueOfInt64(n), err
	case uint64Form:
		n, err := d.unsigned()
		return protoreflect.ValueOfUint64(n), err
	case floatForm:
		n, err := d.float(32)
		return protoreflect.ValueOfFloat32(float32(n)), err
	case doubleForm:
		n, err := d.float(64)
		return protoreflect.ValueOfFloat64(n), err
	case bytesForm:
		return d.bytes()
	case rawForm:
		return d.raw()
	case enumForm:
		return d.enum(f.enum)
	}
	d.space()
	if d.peek() != '"' {
		return protoreflect.Value{}, d.wanted("a text")
	}
	text, err := d.string()
	return protoreflect.ValueOfString(string(text)), err
}

func (d *decoder) bool() (protoreflect.Value, error) {
	d.space()
	for _, v := range []bool{true, false} {
		if d.word(strconv.FormatBool(v)) == nil {
			return protoreflect.ValueOfBool(v), nil
		}
	}
	return protoreflect.Value{}, d.wanted("true or false")
}

// numeral returns a number, which may also stand in a text.
func (d *decoder) numeral(what string) (string, error) {
	d.space()
	if d.peek() != '"' {
		if c := d.peek(); c != '-' && (c < '0' || c > '9') {
			return "", d.wanted(what)
		}
		n, err := d.number()
		if err != nil {
			return "", d.at(err)
		}
		return string(n), nil
	}
	start := d.pos
	inside, _, err := d.str()
	if err != nil {
		return "", d.at(err)
	}
	inner := scanner{text: inside}
	if _, err := inner.number(); err != nil || inner.pos < len(inside) {
		d.pos = start
		return "", d.wanted(what)
	}
	return string(inside), nil
}

func (d *decoder) integer(least, most int64) (int64, error) {
	text, err := d.numeral("a whole number")
	if err != nil {
		return 0, err
	}
	n, parseErr := strconv.ParseInt(text, 10, 64)
	if parseErr != nil && strings.ContainsAny(text, ".eE") {
		// 1e3 and 1.0 are whole numbers too, as far as a float64 can say.
		v, _ := strconv.ParseFloat(text, 64)
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return 0, d.errorf("want a whole number, got %s", clip(text))
		}
		n, parseErr = int64(v), nil
	}
	if parseErr != nil || n < least || n > most {
		return 0, d.errorf("want a whole number from %d to %d, got %s", least, most, clip(text))
	}
	return n, nil
}

func (d *decoder) unsigned() (uint64, error) {
	text, err := d.numeral("a whole number")
	if err != nil {
		return 0, err
	}
	n, parseErr := strconv.ParseUint(text, 10, 64)
	if parseErr != nil {
		return 0, d.errorf("want a whole number from 0 to %d, got %s", uint64(math.MaxUint64), clip(text))
	}
	return n, nil
}

func (d *decoder) float(bits int) (float64, error) {
	d.space()
	for text, v := range map[string]float64{`"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1)} {
		if d.word(text) == nil {
			return v, nil
		}
	}
	text, err := d.numeral("a number")
	if err != nil {
		return 0, err
	}
	v, parseErr := strconv.ParseFloat(text, bits)
	if parseErr != nil {
		return 0, d.errorf("%s is too large a number", clip(text))
	}
	return v, nil
}

// bytes reads base64 in either alphabet, padded or not.
func (d *decoder) bytes() (protoreflect.Value, error) {
	d.space()
	if d.peek() != '"' {
		return protoreflect.Value{}, d.wanted("bytes in base64")
	}
	text, err := d.string()
	if err != nil {
		return protoreflect.Value{}, err
	}
	coding := base64.RawStdEncoding
	if slices.ContainsFunc(text, func(c byte) bool { return c == '-' || c == '_' }) {
		coding = base64.RawURLEncoding
	}
	trimmed := strings.TrimRight(string(text), "=")
	data, decodeErr := coding.DecodeString(trimmed)
	if decodeErr != nil || strings.ContainsAny(trimmed, "\r\n") {
		return protoreflect.Value{}, d.errorf("want bytes in base64, got the text %q", clip(string(text)))
	}
	return protoreflect.ValueOfBytes(data), nil
}

// raw cuts a JSON value out of the text.
func (d *decoder) raw() (protoreflect.Value, error) {
	d.space()
	start := d.pos
	if err := d.value(MaxRawNesting); err != nil {
		return protoreflect.Value{}, d.at(err)
	}
	return protoreflect.ValueOfBytes(append([]byte(nil), d.text[start:d.pos]...)), nil
}

func (d *decoder) enum(e *enum) (protoreflect.Value, error) {
	d.space()
	if d.peek() != '"' {
		if d.lenient {
			n, err := d.integer(math.MinInt32, math.MaxInt32)
			return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)), err
		}
		return protoreflect.Value{}, d.wanted("one of " + strings.Join(e.names, ", "))
	}
	name, err := d.string()
	if err != nil {
		return protoreflect.Value{}, err
	}
	if n, ok := e.byName[string(name)]; ok {
		return protoreflect.ValueOfEnum(n), nil
	}
	if d.lenient {
		return protoreflect.Value{}, nil
	}
	hint := ""
	if len(name) <= maxHinted {
		hint = nearest.Hint(strings.ToUpper(string(name)), e.names)
	}
	return protoreflect.Value{}, d.errorf("want one of %s, got %q%s", strings.Join(e.names, ", "), clip(string(name)), hint)
}

// string reads a string. What it returns is good until the text is changed.
func (d *decoder) string() ([]byte, error) {
	inside, escaped, err := d.str()
	if err != nil {
		return nil, d.at(err)
	}
	if !escaped {
		return inside, nil
	}
	return d.unescape(inside)
}

// unescape resolves the escapes of a string, which are known to be well formed.
func (d *decoder) unescape(inside []byte) ([]byte, error) {
	text := make([]byte, 0, len(inside))
	for i := 0; i < len(inside); i++ {
		c := inside[i]
		if c != '\\' {
			text = append(text, c)
			continue
		}
		i++
		switch c = inside[i]; c {
		case 'u':
			r := rune4(inside[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				second := rune(-1)
				if rest := inside[i+1:]; len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
					second = rune4(rest[2:])
				}
				if pair := utf16.DecodeRune(r, second); pair != utf8.RuneError {
					text = utf8.AppendRune(text, pair)
					i += 6
					continue
				}
				return nil, d.errorf("\\u%04x is half of a surrogate pair: it is no character by itself", r)
			}
			text = utf8.AppendRune(text, r)
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		default:
			text = append(text, c)
		}
	}
	return text, nil
}

// rune4 reads the four hexadecimal digits at the start of text.
func rune4(text []byte) rune {
	n, _ := strconv.ParseUint(string(text[:4]), 16, 32)
	return rune(n)
}
