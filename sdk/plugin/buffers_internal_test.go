package plugin

import "testing"

// TestBuffers takes buffers at the edges of their sizes, and gives them back.
func TestBuffers(t *testing.T) {
	t.Parallel()
	var p bufferPool
	for _, c := range []struct{ length, capacity int }{
		{0, 1 << 10}, {1, 1 << 10}, {1 << 10, 1 << 10}, {1<<10 + 1, 1 << 11}, {40_000, 1 << 16}, {1 << 22, 1 << 22}, {1<<22 + 1, 1<<22 + 1},
	} {
		for range 3 {
			b := p.Get(c.length)
			if len(*b) != c.length || cap(*b) < c.capacity || c.length <= 1<<22 && cap(*b) != c.capacity {
				t.Errorf("a buffer of %d has %d of %d", c.length, len(*b), cap(*b))
			}
			p.Put(b)
		}
	}
	odd := make([]byte, 5000)
	p.Put(&odd) // not one of ours: it is let go
	if b := p.Get(5000); cap(*b) != 8192 {
		t.Errorf("a buffer of 5000 has room for %d", cap(*b))
	}
}
