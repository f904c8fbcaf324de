package module

import (
	"fmt"

	"github.com/boardd/boardd/sdk/job"
)

// Refusal says why a module is not accepted, where, and what would be. It is of
// the kind job.Invalid.
type Refusal struct {
	Function int    // index, -1 outside of functions
	Name     string // of the function, where the module says it
	Offset   int    // in the module's bytes
	What     string // what is wrong, with the limit if it is one
	Mend     string // what to do; empty where the file is damaged
}

// Error returns all of it on one line.
func (r *Refusal) Error() string {
	text := fmt.Sprintf("offset %#x: %s", r.Offset, r.What)
	if r.Function >= 0 {
		text = fmt.Sprintf("function %d, offset %#x: %s", r.Function, r.Offset, r.What)
		if r.Name != "" {
			text = fmt.Sprintf("function %d (%s), offset %#x: %s", r.Function, r.Name, r.Offset, r.What)
		}
	}
	if r.Mend != "" {
		text += "; " + r.Mend
	}
	return text
}

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return job.Invalid }

// cursor reads the module's bytes. What it can't read ends the reading by a
// panic with a *Refusal, which Read recovers.
type cursor struct {
	bytes    []byte
	at, end  int
	function int
}

func (c *cursor) refuse(at int, mend, format string, args ...any) {
	panic(&Refusal{Function: c.function, Offset: at, What: fmt.Sprintf(format, args...), Mend: mend})
}

func (c *cursor) byte() byte {
	if c.at >= c.end {
		c.refuse(c.at, "", "the section or function ends too early")
	}
	c.at++
	return c.bytes[c.at-1]
}

// uint reads an unsigned LEB128 of at most 32 bits.
func (c *cursor) uint() uint32 {
	start := c.at
	var v uint64
	for shift := uint(0); shift < 35; shift += 7 {
		b := c.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > 1<<32-1 {
				break
			}
			return uint32(v)
		}
	}
	c.refuse(start, "", "a number of more than 32 bits")
	return 0
}

// sint reads a signed LEB128 of at most that many bits.
func (c *cursor) sint(bits uint) int64 {
	start := c.at
	var v int64
	for shift := uint(0); shift < bits; shift += 7 {
		b := c.byte()
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			if bits < 64 && (v >= 1<<(bits-1) || v < -1<<(bits-1)) || bits == 64 && shift == 63 && b != 0 && b != 0x7f {
				break
			}
			return v
		}
	}
	c.refuse(start, "", "a number of more than %d bits", bits)
	return 0
}

// count reads a number of things, of which each takes at least so many bytes.
func (c *cursor) count(what string, most, size int, mend string) int {
	start := c.at
	n := int(c.uint())
	if n > most {
		c.refuse(start, mend, "%d %s: want at most %d", n, what, most)
	}
	if n*size > c.end-c.at {
		c.refuse(start, "", "%d %s in %d bytes", n, what, c.end-c.at)
	}
	return n
}

// index reads an index below a bound.
func (c *cursor) index(what string, bound int) uint32 {
	start := c.at
	n := c.uint()
	if uint64(n) >= uint64(bound) {
		c.refuse(start, "", "%s %d of %d", what, n, bound)
	}
	return n
}

func (c *cursor) skip(n int) []byte {
	if n < 0 || n > c.end-c.at {
		c.refuse(c.at, "", "the section or function ends too early")
	}
	c.at += n
	return c.bytes[c.at-n : c.at]
}

func (c *cursor) text(what string) string {
	n := c.count("bytes of "+what, MaxName, 1, "use a shorter name")
	return string(c.skip(n))
}
