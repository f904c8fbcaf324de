// Package jsontext checks the JSON text of strangers and finds values in it, without
// decoding it: what is stored is what was sent, byte for byte.
package jsontext

import (
	"bytes"
	"slices"
	"strconv"
	"sync"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// Check reports what is wrong with details as JSON text, or nil. It wants
// one object, nested at most job.MaxDetailsNest deep, without duplicate keys,
// without numbers that no float64 reaches, and without text that is not
// Unicode: what every store and every reader can hold. Nothing is decoded into
// values; a clean object costs no allocation.
func Check(text []byte) error {
	if len(text) > job.MaxDetails {
		return job.Errorf(job.Invalid, "details: %d bytes are too many: want at most %d", len(text), job.MaxDetails)
	}
	c := checkers.Get().(*checker)
	*c = checker{text: text, keys: c.keys[:0]}
	defer func() {
		c.text = nil
		checkers.Put(c)
	}()
	c.space()
	if c.peek() != '{' {
		return job.Errorf(job.Invalid, "details: want a JSON object {...}")
	}
	if c.value(1) {
		c.space()
		if c.at < len(text) {
			c.fail("nothing may follow the object")
		}
	}
	if c.problem != "" {
		return job.Errorf(job.Invalid, "details: at byte %d: %s", c.at, c.problem)
	}
	return nil
}

// checkers keep the room for their keys.
var checkers = sync.Pool{New: func() any { return new(checker) }}

// checker walks over JSON text. A method that returns false has set problem,
// and at is where it was found.
type checker struct {
	text    []byte
	at      int
	problem string
	keys    []key // of the objects that are open, innermost last
}

// key is where a key's text stands, without its quotes.
type key struct {
	start, end int
	escaped    bool
}

func (c *checker) fail(problem string) bool {
	if c.problem == "" {
		c.problem = problem
	}
	return false
}

func (c *checker) peek() byte {
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

func (c *checker) space() {
	for c.at < len(c.text) {
		switch c.text[c.at] {
		case ' ', '\t', '\n', '\r':
			c.at++
		default:
			return
		}
	}
}

func (c *checker) value(depth int) bool {
	switch b := c.peek(); b {
	case '{', '[':
		if depth > job.MaxDetailsNest {
			return c.fail("nested too deep: want at most " + strconv.Itoa(job.MaxDetailsNest) + " levels")
		}
		if b == '{' {
			return c.object(depth)
		}
		return c.array(depth)
	case '"':
		_, ok := c.str()
		return ok
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return c.number()
	}
	if c.at >= len(c.text) {
		return c.fail("the text ends in the middle of the object")
	}
	return c.fail("want a value")
}

func (c *checker) word(w string) bool {
	if !bytes.HasPrefix(c.text[c.at:], []byte(w)) {
		return c.fail("want " + w)
	}
	c.at += len(w)
	return true
}

func (c *checker) object(depth int) bool {
	first := len(c.keys)
	c.at++
	c.space()
	if c.peek() == '}' {
		c.at++
		return true
	}
	for {
		if c.peek() != '"' {
			return c.fail("want a key in double quotes")
		}
		k, ok := c.str()
		if !ok {
			return false
		}
		c.keys = append(c.keys, k)
		c.space()
		if c.peek() != ':' {
			return c.fail("want a colon after the key")
		}
		c.at++
		c.space()
		if !c.value(depth + 1) {
			return false
		}
		c.space()
		switch c.peek() {
		case ',':
			c.at++
			c.space()
		case '}':
			c.at++
			return c.distinct(first)
		default:
			return c.fail("want a comma or } after a value")
		}
	}
}

func (c *checker) array(depth int) bool {
	c.at++
	c.space()
	if c.peek() == ']' {
		c.at++
		return true
	}
	for {
		if !c.value(depth + 1) {
			return false
		}
		c.space()
		switch c.peek() {
		case ',':
			c.at++
			c.space()
		case ']':
			c.at++
			return true
		default:
			return c.fail("want a comma or ] after a value")
		}
	}
}

// distinct checks the keys of the innermost object and forgets them.
func (c *checker) distinct(first int) bool {
	keys := c.keys[first:]
	c.keys = c.keys[:first]
	if len(keys) <= 12 {
		for i := 1; i < len(keys); i++ {
			for j := range i {
				if c.same(keys[i], keys[j]) {
					return c.duplicate(keys[i])
				}
			}
		}
		return true
	}
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = string(c.key(k))
	}
	slices.Sort(texts)
	for i := 1; i < len(texts); i++ {
		if texts[i] == texts[i-1] {
			return c.fail("the key " + strconv.Quote(shorten.To(texts[i], 64)) + " is there twice")
		}
	}
	return true
}

func (c *checker) duplicate(k key) bool {
	c.at = k.start
	return c.fail("the key " + strconv.Quote(shorten.To(string(c.key(k)), 64)) + " is there twice")
}

func (c *checker) same(a, b key) bool {
	if !a.escaped && !b.escaped {
		return bytes.Equal(c.text[a.start:a.end], c.text[b.start:b.end])
	}
	return bytes.Equal(c.key(a), c.key(b))
}

// key returns what a key means.
func (c *checker) key(k key) []byte {
	raw := c.text[k.start:k.end]
	if !k.escaped {
		return raw
	}
	return unescape(raw)
}

// CheckValue reports what is wrong with a JSON value of a caller, or nil. An empty text,
// for no value, is right.
func CheckValue(what string, text []byte, most int) error {
	if len(text) == 0 {
		return nil
	}
	if len(text) > most {
		return job.Errorf(job.Invalid, "%s: %d bytes are too many: want at most %d", what, len(text), most)
	}
	c := checker{text: text}
	c.space()
	if c.value(1) {
		c.space()
		if c.at < len(text) {
			c.fail("nothing may follow the value")
		}
	}
	if c.problem != "" {
		return job.Errorf(job.Invalid, "%s: at byte %d: %s", what, c.at, c.problem)
	}
	return nil
}
