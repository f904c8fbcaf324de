package board

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape returns what a JSON string means whose text was checked.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 >= len(raw) {
			out = append(out, raw[i])
			i++
			continue
		}
		switch b := raw[i+1]; b {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, ok := hex4(raw[i+2:])
			if !ok {
				return append(out, raw[i:]...)
			}
			if utf16.IsSurrogate(r) && i+12 <= len(raw) {
				if low, ok := hex4(raw[i+8:]); ok {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			i += 4
		default:
			out = append(out, b)
		}
		i += 2
	}
	return out
}

// lookup finds the value of a key of the object that text holds: its text, and
// for a string what it means. It returns false if there is no such key or the
// text is no object.
func lookup(text []byte, want string) (value []byte, isString, found bool) {
	c := checker{text: text}
	c.space()
	if c.peek() != '{' {
		return nil, false, false
	}
	c.at++
	for {
		c.space()
		if c.peek() != '"' {
			return nil, false, false
		}
		k, ok := c.str()
		if !ok {
			return nil, false, false
		}
		c.space()
		if c.peek() != ':' {
			return nil, false, false
		}
		c.at++
		c.space()
		start := c.at
		if !c.value(2) {
			return nil, false, false
		}
		if string(c.key(k)) == want {
			value, isString = meaning(text[start:c.at])
			return value, isString, true
		}
		c.space()
		if c.peek() != ',' {
			return nil, false, false
		}
		c.at++
	}
}

func meaning(value []byte) ([]byte, bool) {
	if len(value) < 2 || value[0] != '"' {
		return value, false
	}
	value = value[1 : len(value)-1]
	if bytes.IndexByte(value, '\\') >= 0 {
		value = unescape(value)
	}
	return value, true
}
