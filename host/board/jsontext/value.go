package jsontext

import (
	"strconv"
	"unicode/utf8"
)

// str checks a string and returns its place.
func (c *checker) str() (key, bool) {
	c.at++
	k := key{start: c.at}
	ascii := true
	for c.at < len(c.text) {
		b := c.text[c.at]
		switch {
		case b == '"':
			k.end = c.at
			if !ascii && !utf8.Valid(c.text[k.start:k.end]) {
				c.at = k.start
				return k, c.fail("the text is not valid UTF-8")
			}
			c.at++
			return k, true
		case b == '\\':
			k.escaped = true
			if !c.escape() {
				return k, false
			}
		case b < 0x20:
			return k, c.fail("a control character must be written as \\u00XX")
		default:
			if b >= 0x80 {
				ascii = false
			}
			c.at++
		}
	}
	return k, c.fail("the text ends in the middle of a string")
}

// escape checks one escape sequence; a surrogate must come with its other half.
func (c *checker) escape() bool {
	if c.at+1 >= len(c.text) {
		return c.fail("the text ends in the middle of a string")
	}
	switch c.text[c.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		c.at += 2
		return true
	case 'u':
	default:
		return c.fail("there is no such escape sequence")
	}
	r, ok := hex4(c.text[c.at+2:])
	if !ok {
		return c.fail("want four hexadecimal digits after \\u")
	}
	if r < 0xd800 || r > 0xdfff {
		c.at += 6
		return true
	}
	if r < 0xdc00 && c.at+12 <= len(c.text) && c.text[c.at+6] == '\\' && c.text[c.at+7] == 'u' {
		if low, ok := hex4(c.text[c.at+8:]); ok && low >= 0xdc00 && low <= 0xdfff {
			c.at += 12
			return true
		}
	}
	return c.fail("half of a surrogate pair is no character")
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, d := range b[:4] {
		switch {
		case d >= '0' && d <= '9':
			r = r<<4 | rune(d-'0')
		case d >= 'a' && d <= 'f':
			r = r<<4 | rune(d-'a'+10)
		case d >= 'A' && d <= 'F':
			r = r<<4 | rune(d-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number checks the form of a number, and its size where it might be beyond
// every float64.
func (c *checker) number() bool {
	start := c.at
	if c.peek() == '-' {
		c.at++
	}
	switch {
	case c.peek() == '0':
		c.at++
	case !c.digits():
		return c.fail("want a digit")
	}
	exponent := false
	if c.peek() == '.' {
		c.at++
		if !c.digits() {
			return c.fail("want a digit after the point")
		}
	}
	if b := c.peek(); b == 'e' || b == 'E' {
		exponent = true
		c.at++
		if b := c.peek(); b == '+' || b == '-' {
			c.at++
		}
		if !c.digits() {
			return c.fail("want a digit in the exponent")
		}
	}
	if exponent || c.at-start > 300 {
		if _, err := strconv.ParseFloat(string(c.text[start:c.at]), 64); err != nil {
			c.at = start
			return c.fail("the number is too large to be kept")
		}
	}
	return true
}

func (c *checker) digits() bool {
	start := c.at
	for c.at < len(c.text) && c.text[c.at] >= '0' && c.text[c.at] <= '9' {
		c.at++
	}
	return c.at > start
}
