package wirejson

import (
	"fmt"
	"unicode/utf8"
)

// scanner goes through JSON text. It keeps no more state than its position, so
// that the depth of a text costs no stack.
type scanner struct {
	text []byte
	pos  int
}

// syntaxError says what is wrong with the text itself.
type syntaxError struct {
	at      int
	problem string
}

func (e *syntaxError) describe(text []byte) string {
	line, start := 1, 0
	for i, c := range text[:min(e.at, len(text))] {
		if c == '\n' {
			line, start = line+1, i+1
		}
	}
	if line == 1 {
		return fmt.Sprintf("%s (at character %d)", e.problem, 1+utf8.RuneCount(text[start:min(e.at, len(text))]))
	}
	return fmt.Sprintf("%s (at line %d, character %d)", e.problem, line, 1+utf8.RuneCount(text[start:min(e.at, len(text))]))
}

func (s *scanner) errorf(format string, args ...any) *syntaxError {
	return &syntaxError{at: s.pos, problem: fmt.Sprintf(format, args...)}
}

// unexpected says what is wanted and what stands there.
func (s *scanner) unexpected(wanted string) *syntaxError {
	if s.pos >= len(s.text) {
		return s.errorf("the JSON ends where %s should be", wanted)
	}
	r, size := utf8.DecodeRune(s.text[s.pos:])
	if r == utf8.RuneError && size == 1 {
		return s.errorf("the text is not valid UTF-8")
	}
	return s.errorf("want %s, got %q", wanted, r)
}

// peek returns the next character, or 0 at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.text) {
		return s.text[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return
		}
	}
}

// whole goes through a text that holds one value and nothing else.
func (s *scanner) whole(limit int) *syntaxError {
	if err := s.value(limit); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.text) {
		return s.unexpected("the end of the text")
	}
	return nil
}

// value goes through one value of at most limit levels, which is at most
// MaxRawNesting.
func (s *scanner) value(limit int) *syntaxError {
	var open nest
	for {
		s.space()
		entered, err := s.enter(&open, limit)
		if err != nil {
			return err
		}
		if entered {
			continue
		}
		if done, err := s.leave(&open); done || err != nil {
			return err
		}
	}
}

// nest remembers which of the open levels are objects.
type nest struct {
	depth   int
	objects [MaxRawNesting/64 + 1]uint64
}

func (n *nest) push(object bool) {
	n.depth++
	word, bit := n.depth/64, uint64(1)<<(n.depth%64)
	n.objects[word] &^= bit
	if object {
		n.objects[word] |= bit
	}
}

func (n *nest) inObject() bool { return n.objects[n.depth/64]&(1<<(n.depth%64)) != 0 }

// enter goes through a scalar or an empty container, or into a container up to
// its first value.
func (s *scanner) enter(open *nest, limit int) (entered bool, _ *syntaxError) {
	c := s.peek()
	if c != '{' && c != '[' {
		return false, s.scalar()
	}
	if open.depth == limit {
		return false, s.errorf("the JSON is nested deeper than %d levels", limit)
	}
	s.pos++
	s.space()
	if s.peek() == c+2 { // '}' and ']' stand two after their partners
		s.pos++
		return false, nil
	}
	open.push(c == '{')
	if c == '{' {
		return true, s.memberName()
	}
	return true, nil
}

// leave goes on after a value, up to the next one or, done, to the end of the
// outermost.
func (s *scanner) leave(open *nest) (done bool, _ *syntaxError) {
	for open.depth > 0 {
		s.space()
		c, object := s.peek(), open.inObject()
		switch {
		case c == ',' && object:
			s.pos++
			s.space()
			return false, s.memberName()
		case c == ',':
			s.pos++
			return false, nil
		case object && c == '}', !object && c == ']':
			s.pos++
			open.depth--
		case object:
			return false, s.unexpected("',' or '}'")
		default:
			return false, s.unexpected("',' or ']'")
		}
	}
	return true, nil
}

func (s *scanner) memberName() *syntaxError {
	if s.peek() != '"' {
		return s.unexpected("a name in double quotes")
	}
	if _, _, err := s.str(); err != nil {
		return err
	}
	return s.colon()
}

func (s *scanner) colon() *syntaxError {
	s.space()
	if s.peek() != ':' {
		return s.unexpected("':'")
	}
	s.pos++
	return nil
}

func (s *scanner) scalar() *syntaxError {
	switch c := s.peek(); {
	case c == '"':
		_, _, err := s.str()
		return err
	case c == 't':
		return s.word("true")
	case c == 'f':
		return s.word("false")
	case c == 'n':
		return s.word("null")
	case c == '-' || '0' <= c && c <= '9':
		_, err := s.number()
		return err
	}
	return s.unexpected("a JSON value")
}

func (s *scanner) word(w string) *syntaxError {
	if len(s.text)-s.pos < len(w) || string(s.text[s.pos:s.pos+len(w)]) != w {
		return s.unexpected("a JSON value")
	}
	s.pos += len(w)
	return nil
}

// str goes through a string and returns what is between its quotes, and whether
// there are escapes in it. Surrogates are not looked at.
func (s *scanner) str() (inside []byte, escaped bool, _ *syntaxError) {
	s.pos++
	start := s.pos
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch {
		case c == '"':
			s.pos++
			return s.text[start : s.pos-1], escaped, nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return nil, false, err
			}
		case c < 0x20:
			return nil, false, s.errorf("a string may not hold the control character %q as such: write \\u%04x", rune(c), c)
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.text[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return nil, false, s.errorf("the text is not valid UTF-8")
			}
			s.pos += size
		}
	}
	return nil, false, s.errorf("the text ends within a string")
}

func (s *scanner) escape() *syntaxError {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
		for range 4 {
			if !isHex(s.peek()) {
				return s.unexpected("a hexadecimal digit")
			}
			s.pos++
		}
		return nil
	}
	return s.unexpected("an escape such as \\n or \\u000a")
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// number goes through a number and returns it.
func (s *scanner) number() ([]byte, *syntaxError) {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return nil, s.unexpected("a digit")
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return nil, s.unexpected("a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return nil, s.unexpected("a digit")
		}
	}
	return s.text[start:s.pos], nil
}

func (s *scanner) digits() bool {
	start := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	return s.pos > start
}
