package index

import (
	"math/rand/v2"
	"testing"
)

func TestSlab(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(3, 4))
	var s slab[int]
	want := map[uint32]int{}
	var handles []uint32
	for round := range 100_000 {
		// It grows to many chunks, and shrinks to nothing.
		if grow := round < 50_000; len(handles) == 0 || (rnd.IntN(3) > 0) == grow {
			h := s.alloc()
			if _, ok := want[h]; ok || h == 0 || *s.at(h) != 0 {
				t.Fatalf("handle %d: given out twice, or not empty", h)
			}
			*s.at(h), want[h] = round+1, round+1
			handles = append(handles, h)
			continue
		}
		i := rnd.IntN(len(handles))
		h := handles[i]
		handles[i] = handles[len(handles)-1]
		handles = handles[:len(handles)-1]
		if *s.at(h) != want[h] {
			t.Fatalf("handle %d: %d, want %d", h, *s.at(h), want[h])
		}
		s.drop(h)
		delete(want, h)
	}
	for h, v := range want {
		if *s.at(h) != v {
			t.Fatalf("handle %d: %d, want %d", h, *s.at(h), v)
		}
		s.drop(h)
	}
	kept := 0
	for h := uint32(0); h < s.end(); h += slabSize {
		if s.peek(h) != nil {
			kept++
		}
	}
	if kept > 2 {
		t.Errorf("%d chunks are kept for nothing, want the first and a spare one", kept)
	}
	if s.peek(s.end()) != nil {
		t.Error("there is something beyond the end")
	}
}
