package block

import (
	"strings"
	"unsafe"

	"github.com/boardd/boardd/sdk/job"
)

// seen says which labels a policy is shown: policy.Sees, prepared.
type seen struct {
	exact    []string
	prefixes []string
	none     bool
}

func seenBy(patterns []string) seen {
	s := seen{none: len(patterns) == 0}
	for _, p := range patterns {
		if prefix, open := strings.CutSuffix(p, "*"); open {
			s.prefixes = append(s.prefixes, prefix)
		} else {
			s.exact = append(s.exact, p)
		}
	}
	return s
}

func (s *seen) sees(key string) bool {
	for i := range s.exact {
		if e := s.exact[i]; len(e) == len(key) && e == key {
			return true
		}
	}
	for i := range s.prefixes {
		if strings.HasPrefix(key, s.prefixes[i]) {
			return true
		}
	}
	return false
}

// known are labels' keys that were asked about. Jobs of a board share the memory
// of their keys, so where a text stands says which it is; holding on to it keeps
// that place from being used for another text.
type known struct {
	seen *seen
	all  [64]answer // by where the key stands
}

// answer is how a label with this key begins in a table, if the policy is shown
// it.
type answer struct {
	data  *byte  // the key's, and
	more  uint32 // its length and one
	shown bool
	short bool   // the key has at most 12 bytes, which are in the words
	first uint64 // the key's length, its value's to be added, and four bytes
	then  uint64 // and eight
}

// place is where the answer about a key is, or goes.
func (k *known) place(key string) *answer {
	return &k.all[uint64(uintptr(unsafe.Pointer(unsafe.StringData(key))))*0x9e3779b97f4a7c15>>58]
}

// about reports whether an answer is about a key.
func (a *answer) about(key string) bool {
	return a.data == unsafe.StringData(key) && a.more == uint32(len(key))+1
}

func (k *known) ask(e *answer, key string) {
	*e = answer{data: unsafe.StringData(key), more: uint32(len(key)) + 1, shown: k.seen.sees(key), short: len(key) <= 12}
	var begin [16]byte
	le.PutUint32(begin[:], uint32(len(key)))
	copy(begin[4:], key)
	e.first, e.then = le.Uint64(begin[:]), le.Uint64(begin[8:])
}

// labels writes those labels that the policy is shown, as a table.
func (w *writer) labels(pair []byte, labels []job.Label, k *known) {
	start := w.end
	if k.seen.none {
		labels = nil
	}
	room, end := w.room, start
	for i := range labels {
		l := &labels[i]
		e := k.place(l.Key)
		if !e.about(l.Key) {
			k.ask(e, l.Key)
		}
		if !e.shown {
			continue
		}
		at := room[end:]
		n := 4 + len(l.Key) + len(l.Value)
		if n > len(at) || len(l.Key)|len(l.Value) > 0xffff {
			w.short = true
			return
		}
		if e.short && len(at) >= 16 {
			// What is written behind the key, the value overwrites, or what comes next.
			le.PutUint64(at, e.first|uint64(len(l.Value))<<16)
			le.PutUint64(at[8:], e.then)
		} else {
			le.PutUint32(at, uint32(len(l.Key))|uint32(len(l.Value))<<16)
			put(at[4:4+len(l.Key)], l.Key)
		}
		put(at[4+len(l.Key):n], l.Value)
		end += n
	}
	putPair(pair, start, end-start)
	w.end = end
}
