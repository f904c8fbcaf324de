package taskflow

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/boardd/boardd/sdk/job"
)

// MsgpackOfJSON translates details from JSON, so that Python finds the same
// values: whole numbers from -2^63 to 2^64-1, others if a float64 has exactly
// the decimal value that stands there. Anything else is Invalid, with the path
// of the value.
func MsgpackOfJSON(details []byte) ([]byte, error) {
	if len(details) > job.MaxDetails {
		return nil, invalid("details: %d bytes are too many: want at most %d", len(details), job.MaxDetails)
	}
	s, err := scanObject(details)
	if err != nil {
		return nil, invalid("details: %v", err)
	}
	var out bytes.Buffer
	t := translator{scanner: s, e: msgpack.NewEncoder(&out), out: &out}
	err = t.value(1)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, invalid("%v", within("details", err))
	}
	return out.Bytes(), nil
}

// translator writes the JSON that it goes over as msgpack.
type translator struct {
	*scanner
	e   *msgpack.Encoder // writes to out, which takes everything
	out *bytes.Buffer
}

func (t *translator) value(depth int) error {
	if depth > job.MaxDetailsNest {
		return fmt.Errorf("it is nested too deep: want at most %d levels", job.MaxDetailsNest)
	}
	switch t.peek() {
	case '{':
		return t.object(depth)
	case '[':
		return t.list(depth)
	case '"':
		literal, err := t.str()
		if err != nil {
			return err
		}
		_ = t.e.EncodeString(t.unquote(literal))
		return t.refuseOdd()
	case 'n', 't', 'f':
		return t.literal()
	}
	text, whole, err := t.number()
	switch {
	case err != nil:
		return err
	case whole:
		return t.integer(string(text))
	}
	return t.float(string(text))
}

func (t *translator) refuseOdd() error {
	if t.odd != "" {
		return fmt.Errorf("it has %s", t.odd)
	}
	return nil
}

func (t *translator) object(depth int) error {
	var members bytes.Buffer
	outer, n := t.swap(&members), 0
	err := t.members(func(key string) error {
		if err := t.refuseOdd(); err != nil {
			return err
		}
		n++
		_ = t.e.EncodeString(key)
		if err := t.value(depth + 1); err != nil {
			return within("."+clip(key), err)
		}
		return nil
	})
	t.swap(outer)
	_ = t.e.EncodeMapLen(n)
	t.out.Write(members.Bytes())
	return err
}

func (t *translator) list(depth int) error {
	var items bytes.Buffer
	outer, n := t.swap(&items), 0
	err := t.items(func(i int) error {
		n++
		if err := t.value(depth + 1); err != nil {
			return within("["+strconv.Itoa(i)+"]", err)
		}
		return nil
	})
	t.swap(outer)
	_ = t.e.EncodeArrayLen(n)
	t.out.Write(items.Bytes())
	return err
}

// swap makes another buffer the one that is written to. Msgpack puts a length
// before what it counts, and JSON does not say it there.
func (t *translator) swap(to *bytes.Buffer) *bytes.Buffer {
	from := t.out
	t.out = to
	t.e.ResetWriter(to)
	return from
}

func (t *translator) literal() error {
	switch {
	case t.word("null"):
		_ = t.e.EncodeNil()
	case t.word("true"):
		_ = t.e.EncodeBool(true)
	case t.word("false"):
		_ = t.e.EncodeBool(false)
	default:
		return t.wrong("want a value")
	}
	return nil
}

func (t *translator) integer(text string) error {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		_ = t.e.EncodeUint(n)
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("the number %s is out of range: want -2^63 to 2^64-1", clip(text))
	}
	_ = t.e.EncodeInt(n)
	return nil
}

func (t *translator) float(text string) error {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !sameDecimal(text, strconv.FormatFloat(f, 'e', -1, 64)) {
		return fmt.Errorf("the number %s has more digits than a float64 keeps: want at most 17 significant ones, or text", clip(text))
	}
	_ = t.e.EncodeFloat64(f)
	return nil
}

// sameDecimal reports whether two numbers in decimal are the same: that their
// significant digits are, and where the point stands.
func sameDecimal(a, b string) bool {
	digitsA, pointA := decimal(a)
	digitsB, pointB := decimal(b)
	return digitsA == digitsB && (digitsA == "" || pointA == pointB)
}

// decimal returns a number's sign with its digits without zeros at either end,
// and the power of ten of the first one. Nothing at all stands for zero. An exponent may have
// millions of digits; one that is too large for any float64 is cut to one that still is.
func decimal(text string) (string, int64) {
	sign := ""
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		sign, text = "-", rest
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	power, _ := strconv.ParseInt(exponent, 10, 64) // the nearest that there is, if it is out of range
	power = min(max(power, math.MinInt64/2), math.MaxInt64/2)
	before, after, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(before+after, "0")
	power += int64(len(digits) - len(after))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return "", power
	}
	return sign + digits, power
}
