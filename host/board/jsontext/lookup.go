package jsontext

import (
	"bytes"
	"encoding/json"
)

// unescape returns what the inside of a JSON string means, whose text was checked.
func unescape(inside []byte) []byte {
	quoted := make([]byte, 0, len(inside)+2)
	quoted = append(append(append(quoted, '"'), inside...), '"')
	var meant string
	if json.Unmarshal(quoted, &meant) != nil {
		return inside
	}
	return []byte(meant)
}

// Lookup finds the value of a key of the object that text holds: its text, and
// for a string what it means. It returns false if there is no such key or the
// text is no object.
func Lookup(text []byte, want string) (value []byte, isString, found bool) {
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
