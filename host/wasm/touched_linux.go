package wasm

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"unsafe"
)

// How an instance finds out which of its pages calls touch. A page that is there
// need not have been touched: the kernel maps what is read together with up to 15
// pages around it. So each page is left out of what is copied back for some calls,
// one of each around at a time, and only those that are there again are kept.
const (
	around     = 16   // pages
	tries      = 2    // calls that each page is left out for: mostly one of each kind
	learnFirst = 8    // resets until this is found out, and
	learnEvery = 4096 // until it is again
)

// Bounds of what is copied back: with more, giving pages back is cheaper, and so
// is copying a few more than another call to the kernel.
const (
	maxHot   = 128  // pages
	maxDoubt = 1024 // pages, while it is not known which are hot
	maxGap   = 8    // pages between two that are touched, or beside the block or an end
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

// habits are which pages of a memory calls touch, apart from the block's.
type habits struct {
	resets int
	pages  []habit
	hot    []span // what is copied back, in order
}

type habit struct {
	page int
	was  bool // there again after it was left out
}

// learn is told of the end of a call. Between from and to is the room for blocks.
func (h *habits) learn(memory []byte, from, to int) {
	h.resets++
	step := (h.resets-learnFirst)%learnEvery - tries + 1 // 0: the last call whose pages are gathered
	if h.resets < learnFirst || step > around*tries {
		return
	}
	there := present(memory)
	if step <= 0 {
		if step == 1-tries {
			h.pages = h.pages[:0]
		}
		h.gather(there, from, to)
	} else {
		h.judge(there, (step-1)/tries, step%tries == 0)
	}
	if step < 0 {
		return
	}
	out := step / tries // none is, after the last step
	h.hot = h.hot[:0]
	for _, p := range h.pages {
		if p.page%around != out {
			h.hot = append(h.hot, span{p.page * pageSize, (p.page + 1) * pageSize})
		}
	}
	if out == around {
		h.hot = joined(h.hot, from, to, len(memory))
	}
}

// gather adds the pages that are there to those that may be hot. Too many: none
// is.
func (h *habits) gather(there []bool, from, to int) {
	for page := range there {
		if at := page * pageSize; there[page] && (at < from || at >= to) {
			h.pages = append(h.pages, habit{page: page})
		}
	}
	slices.SortFunc(h.pages, func(a, b habit) int { return a.page - b.page })
	h.pages = slices.Compact(h.pages)
	if len(h.pages) > maxDoubt {
		h.pages = nil
	}
}

// judge notes which of the pages that were left out are there, and after the last
// try forgets those that never were.
func (h *habits) judge(there []bool, out int, last bool) {
	kept := h.pages[:0]
	for _, p := range h.pages {
		if p.page%around == out {
			p.was = p.was || p.page < len(there) && there[p.page]
			if last && !p.was {
				continue
			}
		}
		kept = append(kept, p)
	}
	h.pages = kept
}

// joined returns the spans with the short gaps between them, and between them and
// the block and the memory's ends. Too many pages: none.
func joined(spans []span, from, to, size int) (out []span) {
	total := 0
	for _, area := range []span{{0, from}, {to, size}} {
		first := len(out)
		for _, s := range append(within(spans, area), span{area.to, area.to}) {
			last := area.from
			if n := len(out); n > first {
				last = out[n-1].to
			}
			if s.from-last <= maxGap*pageSize {
				s.from = last
				if len(out) > first {
					out[len(out)-1].to = s.to
					continue
				}
			}
			out = append(out, s)
		}
		for _, s := range out[first:] {
			total += (s.to - s.from) / pageSize
		}
	}
	if total > maxHot {
		return nil
	}
	return out
}

func within(spans []span, area span) (out []span) {
	for _, s := range spans {
		if s.from >= area.from && s.to <= area.to {
			out = append(out, s)
		}
	}
	return out
}

// present says which pages of a memory are there; nothing if nobody knows.
func present(memory []byte) []bool {
	f := pagemap()
	if f == nil {
		return nil
	}
	entries := make([]byte, len(memory)/pageSize*8)
	first := int64(uintptr(unsafe.Pointer(unsafe.SliceData(memory))) / uintptr(pageSize) * 8)
	if _, err := f.ReadAt(entries, first); err != nil {
		return nil
	}
	const flag = 1 << 63
	there := make([]bool, len(entries)/8)
	for page := range there {
		there[page] = binary.NativeEndian.Uint64(entries[page*8:])&flag != 0
	}
	return there
}
