package index

import "math/bits"

// A slab keeps values of one type in chunks that never move, and names each by
// a handle of four bytes. Handle 0 is never given out. A chunk that became
// empty is freed, so that a board that was large once costs nothing later.
type slab[T any] struct {
	chunks []*chunk[T] // nil: let go
	open   []uint32    // chunks with room
	absent []uint32    // chunks that were let go
	spare  bool        // one of open is empty: kept for the next value
}

// A chunk is what the smallest board takes, and there are many of those.
const (
	slabBits = 6
	slabSize = 1 << slabBits
)

type chunk[T any] struct {
	items  [slabSize]T
	taken  [slabSize / 64]uint64
	used   int
	openAt int // its place in open; -1: it is full
}

// at returns the value behind a handle that was given out.
func (s *slab[T]) at(h uint32) *T { return &s.chunks[h>>slabBits].items[h&(slabSize-1)] }

// peek is at for a handle that may have been given back; nil: there is nothing.
func (s *slab[T]) peek(h uint32) *T {
	if int(h>>slabBits) >= len(s.chunks) || s.chunks[h>>slabBits] == nil {
		return nil
	}
	return s.at(h)
}

// end is above every handle.
func (s *slab[T]) end() uint32 { return uint32(len(s.chunks)) << slabBits }

// alloc returns the handle of a zero value.
func (s *slab[T]) alloc() uint32 {
	if len(s.open) == 0 {
		s.extend()
	}
	i := s.open[len(s.open)-1]
	c := s.chunks[i]
	word := 0
	for c.taken[word] == ^uint64(0) {
		word++
	}
	bit := bits.TrailingZeros64(^c.taken[word])
	c.taken[word] |= 1 << bit
	if c.used == 0 {
		s.spare = false
	}
	if c.used++; c.used == slabSize {
		s.open = s.open[:len(s.open)-1]
		c.openAt = -1
	}
	return i<<slabBits | uint32(word)<<6 | uint32(bit)
}

func (s *slab[T]) extend() {
	c := new(chunk[T])
	var i uint32
	if n := len(s.absent); n > 0 {
		i, s.absent = s.absent[n-1], s.absent[:n-1]
		s.chunks[i] = c
	} else {
		i = uint32(len(s.chunks))
		s.chunks = append(s.chunks, c)
	}
	if i == 0 { // handle 0, which keeps the first chunk for good
		c.taken[0], c.used = 1, 1
	}
	c.openAt = len(s.open)
	s.open = append(s.open, i)
	s.spare = s.spare || c.used == 0
}

// drop clears the value and gives its handle back.
func (s *slab[T]) drop(h uint32) {
	var zero T
	*s.at(h) = zero
	i := h >> slabBits
	c := s.chunks[i]
	c.taken[h&(slabSize-1)>>6] &^= 1 << (h & 63)
	c.used--
	if c.openAt < 0 {
		c.openAt = len(s.open)
		s.open = append(s.open, i)
	}
	if c.used > 0 {
		return
	}
	if !s.spare {
		s.spare = true
		return
	}
	last := s.open[len(s.open)-1]
	s.open[c.openAt], s.chunks[last].openAt = last, c.openAt
	s.open = s.open[:len(s.open)-1]
	s.chunks[i] = nil
	s.absent = append(s.absent, i)
}
