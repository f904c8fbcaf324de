package taskflow

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/job"
)

// JSONOfMsgpack translates details to JSON if JSON can hold them: a map of text
// to text, numbers, truth values, nil, lists and such maps, at most
// job.MaxDetailsNest levels, no key twice. It reports false for everything else,
// such as bytes, times, sets and NaN: then the msgpack is all there is.
func JSONOfMsgpack(details []byte) ([]byte, bool) {
	w := jsonWriter{reader: reader{data: details}, out: make([]byte, 0, len(details)+len(details)/2)}
	if len(details) == 0 || !w.value(1) || w.at != len(details) || w.out[0] != '{' {
		return nil, false
	}
	return w.out, true
}

// jsonWriter writes the msgpack that it goes over as JSON.
type jsonWriter struct {
	reader

	out []byte
}

func (w *jsonWriter) value(depth int) bool {
	v, err := w.next()
	if err != nil || depth > job.MaxDetailsNest && (v.kind == kindArray || v.kind == kindMap) {
		return false
	}
	switch v.kind {
	case kindNil:
		w.out = append(w.out, "null"...)
	case kindBool:
		w.out = strconv.AppendBool(w.out, v.bits == 1)
	case kindInt:
		w.out = strconv.AppendInt(w.out, int64(v.bits), 10)
	case kindUint:
		w.out = strconv.AppendUint(w.out, v.bits, 10)
	case kindFloat:
		return w.float(v.float())
	case kindStr:
		return w.text(v.body)
	case kindArray:
		return w.list(int(v.bits), depth)
	case kindMap:
		return w.object(int(v.bits), depth)
	default: // kindBin, kindExt
		return false
	}
	return true
}

func (w *jsonWriter) list(n, depth int) bool {
	w.out = append(w.out, '[')
	for i := range n {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if !w.value(depth + 1) {
			return false
		}
	}
	w.out = append(w.out, ']')
	return true
}

func (w *jsonWriter) object(n, depth int) bool {
	seen := make(map[string]bool, min(n, 64))
	w.out = append(w.out, '{')
	for i := range n {
		key, err := w.key()
		if err != nil || key.kind != kindStr || seen[string(key.body)] {
			return false
		}
		seen[string(key.body)] = true
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.text(key.body)
		w.out = append(w.out, ':')
		if !w.value(depth + 1) {
			return false
		}
	}
	w.out = append(w.out, '}')
	return true
}

// text writes text as most programs do: only what has to be escaped is.
func (w *jsonWriter) text(body []byte) bool {
	if !utf8.Valid(body) {
		return false
	}
	w.out = append(w.out, '"')
	for _, b := range body {
		switch {
		case b == '"' || b == '\\':
			w.out = append(w.out, '\\', b)
		case b >= ' ':
			w.out = append(w.out, b)
		default:
			w.out = appendControl(w.out, rune(b))
		}
	}
	w.out = append(w.out, '"')
	return true
}

// float writes a float as Python does: always with a point or an exponent, so
// that it is one again when it is read.
func (w *jsonWriter) float(f float64) bool {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return false
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	_, exponent, _ := strings.Cut(text, "e")
	if power, _ := strconv.Atoi(exponent); power >= -4 && power < 16 {
		if text = strconv.FormatFloat(f, 'f', -1, 64); !strings.Contains(text, ".") {
			text += ".0"
		}
	}
	w.out = append(w.out, text...)
	return true
}
