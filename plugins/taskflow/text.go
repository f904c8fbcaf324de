package taskflow

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func hex4(text []byte) (rune, bool) {
	if len(text) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[:4]), 16, 16)
	return rune(n), err == nil
}

// unquote returns what text that str has gone over reads. A surrogate without
// its other half is odd; it becomes U+FFFD.
func (s *scanner) unquote(literal []byte) string {
	inner := literal[1 : len(literal)-1]
	first := strings.IndexByte(string(inner), '\\')
	if first < 0 {
		return string(inner)
	}
	out := append(make([]byte, 0, len(inner)), inner[:first]...)
	for i := first; i < len(inner); i++ {
		if inner[i] != '\\' {
			out = append(out, inner[i])
			continue
		}
		i++
		if inner[i] != 'u' {
			out = append(out, escapes[inner[i]])
			continue
		}
		r, _ := hex4(inner[i+1:])
		i += 4
		if utf16.IsSurrogate(r) {
			second := rune(0)
			if i+2 < len(inner) && inner[i+1] == '\\' && inner[i+2] == 'u' {
				second, _ = hex4(inner[i+3:])
			}
			if r = utf16.DecodeRune(r, second); r == utf8.RuneError {
				s.unusual("a surrogate without its other half")
			} else {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// quote appends text as Python's json module writes it: in ASCII.
func quote(out []byte, text string) []byte {
	out = append(out, '"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r >= ' ' && r <= '~':
			out = append(out, byte(r))
		case r < ' ':
			out = appendControl(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return append(out, '"')
}

// appendControl appends a control character, escaped.
func appendControl(out []byte, r rune) []byte {
	if strings.ContainsRune("\b\f\n\r\t", r) {
		return append(out, '\\', "btn_fr"[r-'\b'])
	}
	return fmt.Appendf(out, `\u%04x`, r)
}
