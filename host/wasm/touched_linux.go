package wasm

import (
	"encoding/binary"
	"os"
	"sync"
	"unsafe"
)

// When an instance looks which of its pages calls touch: each of the first times
// that it is reset, and then now and then.
const (
	learnFirst = 3
	learnEvery = 512
)

// Bounds of what is copied back: with more, giving pages back is cheaper, and so
// is copying a few more than another call to the kernel.
const (
	maxHot = 128 // pages
	maxGap = 8   // pages between two that are touched
)

// span is a part of a memory.
type span struct{ from, to int }

// pagemap is where the kernel says which pages there are; nil if it does not.
var pagemap = sync.OnceValue(func() *os.File {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return nil
	}
	return f
})

// touched returns the pages of a memory that are there, in order, but for those
// between from and to. Too many: none.
func touched(memory []byte, from, to int) (spans []span) {
	f := pagemap()
	if f == nil {
		return nil
	}
	entries := make([]byte, len(memory)/pageSize*8)
	first := int64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))) / uintptr(pageSize) * 8)
	if _, err := f.ReadAt(entries, first); err != nil {
		return nil
	}
	const present = 1 << 63
	total := 0
	for page := range len(entries) / 8 {
		at := page * pageSize
		if binary.NativeEndian.Uint64(entries[page*8:])&present == 0 || at >= from && at < to {
			continue
		}
		if n := len(spans); n > 0 && at-spans[n-1].to <= maxGap*pageSize && (at < from) == (spans[n-1].from < from) {
			total += (at + pageSize - spans[n-1].to) / pageSize
			spans[n-1].to = at + pageSize
		} else {
			spans = append(spans, span{at, at + pageSize})
			total++
		}
		if total > maxHot {
			return nil
		}
	}
	return spans
}
