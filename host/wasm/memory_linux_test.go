package wasm

import (
	"bytes"
	"testing"

	"github.com/boardd/boardd/internal/testneed"
)

// habitual is a memory of which calls read one page and write another, always the
// same ones.
type habitual struct {
	*memory

	image *image
	from  int // of the room for blocks
	sum   byte
}

const (
	pageRead    = 200 // behind the room
	pageWritten = 300
)

func newHabitual(t *testing.T) *habitual {
	t.Helper()
	h := &habitual{from: 8 * pageSize}
	size := uint64(h.from + roomSize + 400*pageSize)
	newMemory(func(made *memory) { h.memory = made })(0, size)
	t.Cleanup(h.Free)
	h.Reallocate(size)
	for at := 0; at < h.size; at += pageSize {
		h.all[at] = byte(at / pageSize)
	}
	clear(h.all[h.from : h.from+roomSize])
	var err error
	if h.image, err = h.takeImage(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.image.close)
	return h
}

func (h *habitual) page(n int) int { return h.from + roomSize + n*pageSize }

// call is one that also writes another page, and its reset.
func (h *habitual) call(t *testing.T, other int) {
	t.Helper()
	h.sum += h.all[h.page(pageRead)]
	h.all[h.page(pageWritten)]++
	h.all[h.page(other)] = 1 // reading would map what is around
	if _, err := h.restore(h.image, h.from, h.from+pageSize); err != nil {
		t.Fatal(err)
	}
}

const manyCalls = learnFirst + around*tries + 20

// What calls touch is told from what was mapped beside it.
func TestHabits(t *testing.T) {
	t.Parallel()
	if pagemap() == nil {
		testneed.Skip(t, "/proc/self/pagemap")
	}
	h := newHabitual(t)
	for n := range manyCalls {
		h.call(t, n) // each only once
	}
	total, found := 0, 0
	for _, s := range h.habits.hot {
		total += (s.to - s.from) / pageSize
		for _, n := range []int{pageRead, pageWritten} {
			if s.from <= h.page(n) && h.page(n) < s.to {
				found++
			}
		}
	}
	// Besides, what is before the room is a short gap.
	if found != 2 || total != 2+8 {
		t.Errorf("%d of the two pages that calls touch are copied back, of %d in all: %v", found, total, h.habits.hot)
	}
}

// Whatever a call did, nothing of it is left, while habits are found out and
// after it.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	h := newHabitual(t)
	for n := range manyCalls {
		h.call(t, n)
		if !bytes.Equal(h.all[:h.size], h.image.view) {
			t.Fatalf("after call %d the memory is not what it was", n)
		}
	}
}
