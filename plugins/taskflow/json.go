package taskflow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A scanner goes over JSON text as Python's json module reads it: NaN and the
// infinities are numbers, a key may come twice, text may have lone surrogates
// (escaped), and whole numbers have up to MaxDigits digits. encoding/json knows
// none of these, and it does not say where a value stands.
//
// A method that goes over a value returns its text.
type scanner struct {
	text []byte
	at   int
	odd  string // the first thing that only Python takes: a key twice, half a surrogate
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

func (s *scanner) space() {
	for s.at < len(s.text) && strings.IndexByte(" \t\n\r", s.text[s.at]) >= 0 {
		s.at++
	}
}

func (s *scanner) unusual(what string) {
	if s.odd == "" {
		s.odd = what
	}
}

// want takes one byte after any space.
func (s *scanner) want(b byte) error {
	s.space()
	if s.peek() != b || s.at == len(s.text) {
		return s.wrong("want %q", b)
	}
	s.at++
	return nil
}

func (s *scanner) wrong(format string, args ...any) error {
	return fmt.Errorf("at byte %d: %s", s.at, fmt.Sprintf(format, args...))
}

// value goes over one value and what is in it, and the space before it.
func (s *scanner) value(depth int) ([]byte, error) {
	s.space()
	start := s.at
	var err error
	switch b := s.peek(); b {
	case '{', '[':
		if depth >= MaxNesting {
			return nil, s.wrong("it is nested too deep: want at most %d levels", MaxNesting)
		}
		if b == '{' {
			err = s.members(func(string) error { _, err := s.value(depth + 1); return err })
		} else {
			err = s.items(func(int) error { _, err := s.value(depth + 1); return err })
		}
	case '"':
		_, err = s.str()
	default:
		err = s.scalar()
	}
	if err != nil {
		return nil, err
	}
	return s.text[start:s.at:s.at], nil
}

// scalar goes over a number or a word.
func (s *scanner) scalar() error {
	for _, word := range [...]string{"null", "true", "false", "NaN", "Infinity", "-Infinity"} {
		if s.word(word) {
			return nil
		}
	}
	_, _, err := s.number()
	return err
}

func (s *scanner) word(w string) bool {
	if !strings.HasPrefix(string(s.text[s.at:min(len(s.text), s.at+len(w))]), w) {
		return false
	}
	s.at += len(w)
	return true
}

// members goes over an object. each is called before every value, with its key,
// and goes over the value.
func (s *scanner) members(each func(key string) error) error {
	if err := s.want('{'); err != nil {
		return err
	}
	var seen map[string]bool
	for s.space(); s.peek() != '}'; s.space() {
		if len(seen) > 0 {
			if err := s.want(','); err != nil {
				return err
			}
			s.space()
		}
		literal, err := s.str()
		if err != nil {
			return err
		}
		key := s.unquote(literal)
		if seen[key] {
			s.unusual("the key " + strconv.Quote(clip(key)) + " twice")
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[key] = true
		if err := s.want(':'); err != nil {
			return err
		}
		s.space()
		if err := each(key); err != nil {
			return err
		}
	}
	s.at++
	return nil
}

// items goes over a list. each goes over one value.
func (s *scanner) items(each func(i int) error) error {
	if err := s.want('['); err != nil {
		return err
	}
	i := 0
	for s.space(); s.peek() != ']'; s.space() {
		if i > 0 {
			if err := s.want(','); err != nil {
				return err
			}
			s.space()
		}
		if err := each(i); err != nil {
			return err
		}
		i++
	}
	s.at++
	return nil
}

// str goes over text with its quotes.
func (s *scanner) str() ([]byte, error) {
	start := s.at
	if s.peek() != '"' {
		return nil, s.wrong("want text in double quotes")
	}
	for s.at++; s.at < len(s.text); s.at++ {
		switch b := s.text[s.at]; {
		case b == '"':
			s.at++
			return s.text[start:s.at:s.at], nil
		case b < ' ':
			return nil, s.wrong("byte 0x%02x within text: want it escaped", b)
		case b == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		}
	}
	return nil, s.wrong("the text does not end")
}

// escape goes over the byte after a backslash, and over the digits of \u but
// for the last.
func (s *scanner) escape() error {
	s.at++
	switch b := s.peek(); {
	case b == 'u':
		if _, ok := hex4(s.text[s.at+1:]); !ok {
			return s.wrong(`want four hexadecimal digits after \u`)
		}
		s.at += 4
	case b == 0 || strings.IndexByte(`"\/bfnrt`, b) < 0:
		return s.wrong("there is no escape \\%c", b)
	}
	return nil
}

// number goes over a number and says whether it is a whole one, to Python.
func (s *scanner) number() (text []byte, whole bool, err error) {
	start := s.at
	if s.peek() == '-' {
		s.at++
	}
	digits := s.digits()
	switch {
	case digits == 0:
		return nil, false, s.wrong("want a value")
	case digits > 1 && s.text[s.at-digits] == '0':
		return nil, false, s.wrong("a number begins with 0")
	}
	whole = true
	if s.peek() == '.' {
		s.at++
		if whole = false; s.digits() == 0 {
			return nil, false, s.wrong("want digits after the point")
		}
	}
	if b := s.peek(); b == 'e' || b == 'E' {
		s.at++
		if b := s.peek(); b == '+' || b == '-' {
			s.at++
		}
		if whole = false; s.digits() == 0 {
			return nil, false, s.wrong("want digits in the exponent")
		}
	}
	if whole && digits > MaxDigits {
		return nil, false, s.wrong("a whole number has %d digits: Python reads at most %d", digits, MaxDigits)
	}
	return s.text[start:s.at:s.at], whole, nil
}

func (s *scanner) digits() int {
	start := s.at
	for b := s.peek(); b >= '0' && b <= '9'; b = s.peek() {
		s.at++
	}
	return s.at - start
}

// scanObject begins to scan a text that is to be one object in UTF-8, and end ends
// it.
func scanObject(text []byte) (*scanner, error) {
	s := &scanner{text: text}
	if !utf8.Valid(text) {
		return s, errors.New("it is not UTF-8")
	}
	if s.space(); s.peek() != '{' {
		return s, errors.New("want an object {...}")
	}
	return s, nil
}

func (s *scanner) end() error {
	if s.space(); s.at < len(s.text) {
		return s.wrong("something follows it")
	}
	return nil
}
