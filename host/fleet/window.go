package fleet

import "sync"

// Window tells a message from its repetition: each number of a sender is let in once. It
// keeps the last windowSize numbers of each sender; an older one is taken for a
// repetition. The zero value lets nobody in.
type Window struct {
	mu      sync.Mutex
	senders map[string]*sender // those that are known, and nil for one that has sent nothing
}

type sender struct {
	highest uint64
	seen    [windowSize / 64]uint64
}

// windowSize is more than there can be under way between two servers at once, so that no
// message is overtaken by so many others.
const windowSize = 1 << 15

// Keep says who may send. What was seen of everybody else is forgotten, and cannot be
// repeated, since they may not send.
func (w *Window) Keep(senders []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := make(map[string]*sender, len(senders))
	for _, from := range senders {
		kept[from] = w.senders[from]
	}
	w.senders = kept
}

// Fresh reports whether a message comes from somebody who may send, and was not let in
// before.
func (w *Window) Fresh(from string, number uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.senders[from]
	if !known {
		return false
	}
	if s == nil {
		s = &sender{}
		w.senders[from] = s
	}
	switch {
	case number > s.highest:
		for n := s.highest + 1; n < number && n-s.highest <= windowSize; n++ {
			s.clear(n)
		}
		s.highest = number
	case s.highest-number >= windowSize || s.has(number):
		return false
	}
	s.set(number)
	return true
}

func (s *sender) has(n uint64) bool { return s.seen[n/64%uint64(len(s.seen))]&(1<<(n%64)) != 0 }
func (s *sender) set(n uint64)      { s.seen[n/64%uint64(len(s.seen))] |= 1 << (n % 64) }
func (s *sender) clear(n uint64)    { s.seen[n/64%uint64(len(s.seen))] &^= 1 << (n % 64) }
