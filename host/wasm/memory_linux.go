package wasm

import (
	"fmt"
	"unsafe"

	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

// memory is the linear memory of one instance, outside of Go's heap: room for its
// maximum is reserved and takes nothing until it is written. Once an image of it
// was taken, its pages are those of the image, copied as they are written, and
// to put them back is to forget the copies.
type memory struct {
	all    []byte // everything that is reserved
	size   int    // what the module has
	habits habits
}

// newMemory is what wazero calls for an instance's memory.
func newMemory(keep func(*memory)) experimental.MemoryAllocatorFunc {
	return func(_, most uint64) experimental.LinearMemory {
		all, err := unix.Mmap(-1, 0, max(int(most), pageSize), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			panic(fmt.Errorf("no memory for an instance: %w", err)) // wazero gives it back as an error
		}
		m := &memory{all: all}
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
func (m *memory) Free() {
	if m.all != nil {
		_ = unix.Munmap(m.all)
		m.all = nil
	}
}

// image is a picture of a memory, shared by all instances of one rule.
type image struct {
	file int
	size int
	view []byte // of the file
}

// takeImage makes a picture of the memory as it is, and the memory one of its
// users.
func (m *memory) takeImage() (*image, error) {
	file, err := unix.MemfdCreate("boardd-policy", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("the picture of an instance: %w", err)
	}
	i := &image{file: file, size: m.size}
	for at := 0; at < m.size; {
		n, err := unix.Pwrite(file, m.all[at:m.size], int64(at))
		if err != nil {
			i.close()
			return nil, fmt.Errorf("the picture of an instance: %w", err)
		}
		at += n
	}
	if i.view, err = unix.Mmap(file, 0, i.size, unix.PROT_READ, unix.MAP_SHARED); err == nil {
		err = m.become(i)
	}
	if err != nil {
		i.close()
		return nil, fmt.Errorf("the picture of an instance: %w", err)
	}
	return i, nil
}

// become makes the memory what the image shows.
func (m *memory) become(i *image) error {
	if m.size != i.size {
		return fmt.Errorf("a memory of %d bytes for a picture of %d", m.size, i.size)
	}
	_, err := unix.MmapPtr(i.file, 0, unsafe.Pointer(&m.all[0]), uintptr(i.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("the memory of an instance: %w", err)
	}
	return nil
}

// restore makes the memory what the image shows, apart from the pages between
// from, which is the beginning of one, and to. It returns where they end. What
// stands there would be written again at once, and a page that was given back is
// dear to get. So is a page that every call touches: those are copied back
// instead.
func (m *memory) restore(i *image, from, to int) (keptTo int, err error) {
	to = min(align(to), m.size)
	m.habits.learn(m.all[:m.size], from, from+roomSize)
	at := 0
	for _, h := range append(m.habits.hot, span{m.size, m.size}) {
		for _, gap := range []span{{at, min(h.from, from)}, {max(at, to), h.from}} { // what is kept lies between hot pages
			if gap.from < gap.to {
				if err := unix.Madvise(m.all[gap.from:gap.to], unix.MADV_DONTNEED); err != nil {
					return 0, fmt.Errorf("the memory of an instance: %w", err)
				}
			}
		}
		copy(m.all[h.from:h.to], i.view[h.from:h.to])
		at = max(at, h.to)
	}
	return to, nil
}

func (i *image) bytes() int { return i.size }

func (i *image) close() {
	if i.view != nil {
		_ = unix.Munmap(i.view)
	}
	_ = unix.Close(i.file)
}
