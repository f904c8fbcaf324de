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

// known are labels that were written before. The jobs of a board share the memory
// of equal labels, so where key and value stand says which it is; holding on to
// them keeps these places from being used for other texts.
type known [128]entry // by where key and value stand

// entry is how a label stands in a table. It takes one line of the cache.
type entry struct {
	label job.Label
	more  uint32 // bytes of the entry and one; 1: the policy is not shown it; 0, or above entryRoom+1: they are not in text
	text  [entryRoom]byte
}

const entryRoom = 28

// place is where a label is, or goes.
func (k *known) place(l *job.Label) *entry {
	key, value := uintptr(unsafe.Pointer(unsafe.StringData(l.Key))), uintptr(unsafe.Pointer(unsafe.StringData(l.Value)))
	return &k[uint64(key+value)*0x9e3779b97f4a7c15>>57]
}

// is reports whether an entry is that of a label.
func (e *entry) is(l *job.Label) bool {
	return unsafe.StringData(e.label.Key) == unsafe.StringData(l.Key) && len(e.label.Key) == len(l.Key) &&
		unsafe.StringData(e.label.Value) == unsafe.StringData(l.Value) && len(e.label.Value) == len(l.Value)
}

// learn makes an entry that of a label.
func (e *entry) learn(s *seen, l *job.Label) {
	*e = entry{label: *l, more: 1}
	n := entrySize(l)
	switch {
	case !s.sees(l.Key):
	case n > entryRoom:
		e.more = 0
	default:
		e.more = uint32(n) + 1
		putEntry(e.text[:n], l)
	}
}

func entrySize(l *job.Label) int { return 4 + len(l.Key) + len(l.Value) }

// putEntry writes a label as it stands in a table, whose lengths have 16 bits.
func putEntry(to []byte, l *job.Label) {
	le.PutUint32(to, uint32(len(l.Key))|uint32(len(l.Value))<<16)
	put(to[4:4+len(l.Key)], l.Key)
	put(to[4+len(l.Key):], l.Value)
}

// labels writes those of a job's labels that the policy is shown, of which the
// first was not written before.
func (w *writer) labels(labels []job.Label) {
	for n := 0; n < len(labels); n = w.again(labels) {
		labels = labels[n:]
		w.known.place(&labels[0]).learn(&w.jobs, &labels[0])
		w.label(&labels[0], &w.jobs)
		labels = labels[1:]
	}
}

// again writes labels up to one that was not written before, and returns how many
// these are: for most jobs all. A whole entry is copied for each, also where a
// part of it or none counts: what follows is written over the rest. It calls
// nothing, so that all is kept in registers.
func (w *writer) again(labels []job.Label) int {
	if w.jobs.none {
		return len(labels)
	}
	room, end := unsafe.Pointer(unsafe.SliceData(w.room)), w.end
	if len(w.room)-end < len(labels)*entryRoom {
		return 0
	}
	i := 0
	for ; i < len(labels); i++ {
		l := &labels[i]
		e := w.known.place(l)
		n := e.more - 1
		if !e.is(l) || n > entryRoom {
			break
		}
		*(*[entryRoom]byte)(unsafe.Add(room, end)) = e.text
		end += int(n)
	}
	w.end = end
	return i
}

// label writes a label, if the policy is shown it.
func (w *writer) label(l *job.Label, s *seen) {
	n := entrySize(l)
	if !s.sees(l.Key) {
		return
	}
	if n > len(w.room)-w.end || len(l.Key)|len(l.Value) > 0xffff {
		w.short = true
		return
	}
	putEntry(w.room[w.end:w.end+n], l)
	w.end += n
}

// workerLabels writes those of the worker's labels that the policy is shown.
func (w *writer) workerLabels(labels []job.Label) uint64 {
	start := w.end
	for i := range labels {
		w.label(&labels[i], &w.worker)
	}
	return pair(start, w.end-start)
}
