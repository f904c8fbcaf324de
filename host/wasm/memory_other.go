//go:build !linux

package wasm

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
)

// memory is the linear memory of one instance.
type memory struct {
	all  []byte
	size int
}

func newMemory(keep func(*memory)) experimental.MemoryAllocatorFunc {
	return func(_, most uint64) experimental.LinearMemory {
		m := &memory{all: make([]byte, most)}
		keep(m)
		return m
	}
}

// Reallocate grows the memory; it never moves.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		return nil
	}
	m.size = int(size)
	return m.all[:size:size]
}

// Free gives the memory back.
func (m *memory) Free() { m.all = nil }

// image is a picture of a memory, shared by all instances of one rule.
type image struct{ content []byte }

func (m *memory) takeImage() (*image, error) {
	return &image{content: append([]byte(nil), m.all[:m.size]...)}, nil
}

func (m *memory) become(i *image) error {
	if m.size != len(i.content) {
		return fmt.Errorf("a memory of %d bytes for a picture of %d", m.size, len(i.content))
	}
	copy(m.all, i.content)
	return nil
}

func (m *memory) restore(i *image, from, to int) (keptTo int, err error) {
	to = min(align(to), m.size)
	copy(m.all[:from], i.content)
	copy(m.all[to:m.size], i.content[to:])
	return to, nil
}

func (i *image) bytes() int { return len(i.content) }

func (i *image) close() {}
