package plugin

import (
	"math/bits"
	"sync"
)

// buffers are the buffers of messages, of each power of two. gRPC's own pool has few
// sizes and clears the whole of what it gives, so that a message of 40 KiB costs the
// clearing of 1 MiB; a message is written over all of its length.
var buffers = bufferPool{}

// The sizes of pooled buffers, as powers of two. Larger ones are not pooled.
const (
	minBuffer = 10
	maxBuffer = 22
)

type bufferPool struct {
	pools [maxBuffer + 1]sync.Pool // of *[]byte
}

// Get returns a buffer of a length. Its content is undefined.
func (p *bufferPool) Get(length int) *[]byte {
	size := max(bits.Len(uint(max(length, 1)-1)), minBuffer) //nolint:gosec // not negative
	if size > maxBuffer {
		b := make([]byte, length)
		return &b
	}
	if b, ok := p.pools[size].Get().(*[]byte); ok {
		*b = (*b)[:length]
		return b
	}
	b := make([]byte, length, 1<<size)
	return &b
}

// Put takes a buffer back that Get gave.
func (p *bufferPool) Put(b *[]byte) {
	if size := bits.Len(uint(cap(*b))) - 1; size >= minBuffer && size <= maxBuffer && cap(*b) == 1<<size { //nolint:gosec // not negative
		p.pools[size].Put(b)
	}
}
