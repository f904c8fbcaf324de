package index

// A slab keeps values of one type in chunks that never move, and names each by
// a handle of four bytes. Handle 0 is never given out.
type slab[T any] struct {
	chunks []*[slabSize]T
	next   uint32 // the first handle that was never used
	free   []uint32
}

const (
	slabBits = 10
	slabSize = 1 << slabBits
)

// at returns the value behind a handle.
func (s *slab[T]) at(h uint32) *T { return &s.chunks[h>>slabBits][h&(slabSize-1)] }

// take returns the handle of a zero value.
func (s *slab[T]) take() uint32 {
	if n := len(s.free); n > 0 {
		h := s.free[n-1]
		s.free = s.free[:n-1]
		return h
	}
	if s.next == 0 {
		s.next = 1
	}
	if int(s.next>>slabBits) == len(s.chunks) {
		s.chunks = append(s.chunks, new([slabSize]T))
	}
	s.next++
	return s.next - 1
}

// drop clears the value and gives its handle back.
func (s *slab[T]) drop(h uint32) {
	var zero T
	*s.at(h) = zero
	s.free = append(s.free, h)
}
