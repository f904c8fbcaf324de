package index

import (
	"math"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// place says where a row stands.
type place uint8

const (
	vacant   place = iota // no job
	waiting               // for its time, or held
	ready                 // in the ready set and in those of the classes that may have it
	reserved              // taken by a caller whose claim is under way; in no set but that of all
	claimed
)

// inlineLabels is how many labels a row holds itself; more go into its rare part.
const inlineLabels = 4

// A row is an entry as it is kept: without a pointer, so that a million of them
// cost the garbage collector nothing. What decides the order comes first, close
// together: comparing rows is mostly waiting for memory.
type row struct {
	Order

	verdicts verdictCache
	turn     uint32 // of the verdicts; changes when they are void, see ref
	timer    uint32 // place in its heap, plus one; 0: none
	seen     uint32 // number of the last sync that saw it
	rare     uint32 // 0: none

	version     uint64
	position    driver.Position
	modified    int64
	notBefore   int64 // unix nanoseconds; 0: at once
	name        uint32
	labels      [inlineLabels]uint32
	maxAttempts int32
	attempt     int32
	scored      uint32 // number of the scoring that its score is of
	group       uint32 // of its key; see groupOf
	place       place
	flags       uint8
	nlabels     uint8 // of those in labels
}

// The flags of a row.
const (
	heldBack uint8 = 1 << iota
	woke           // a waiter was told of it since it became ready
)

// rare is what few entries have.
type rare struct {
	status, extra []byte
	labels        []job.Label // all of them, if they are too many for the row
	claim         *Claim      // replaced, never changed
	readySince    int64       // unix microseconds, of a ready job whose last change was none of that; else 0
}

// isOf reports whether an entry is of the posting that the row is of. A uuid can be
// posted again when its job is gone, with anything else, and the versions of that job
// may begin anew.
func (r *row) isOf(e *Entry) bool { return e.Sequence == r.Sequence }

// move gives the row another place in the order; it must be in no ordered set.
func (r *row) move(o Order) { r.Order = o }

// fill writes what the entry says into the row, but for its order.
func (ix *Index) fill(r *row, e *Entry) {
	if name := r.name; ix.names.value(name) != e.Name {
		r.name = ix.names.acquire(e.Name)
		ix.names.release(name)
	}
	ix.fillLabels(r, e)
	ix.fillRare(r, e)

	r.modified, r.version, r.position = e.ModifiedAt.UnixMicro(), e.Version, e.Position
	r.attempt, r.maxAttempts = e.Attempt, e.MaxAttempts
	r.notBefore = nanos(e.NotBefore)
	r.flags &^= heldBack
	if e.Held {
		r.flags |= heldBack
	}
}

// fillLabels changes nothing if the labels are those that the row has.
func (ix *Index) fillLabels(r *row, e *Entry) {
	n := len(e.Labels)
	if n > inlineLabels {
		n = 0
	}
	same := int(r.nlabels) == n
	for i := 0; same && i < n; i++ {
		same = ix.labels.value(r.labels[i]) == e.Labels[i]
	}
	if same {
		return
	}
	old := r.labels
	r.labels, r.nlabels = [inlineLabels]uint32{}, uint8(n)
	for i, l := range e.Labels[:n] {
		r.labels[i] = ix.labels.acquire(l)
	}
	for _, h := range old {
		ix.labels.release(h)
	}
}

// nanos returns unix nanoseconds, 0 for the zero time. Times beyond their range
// come back as its end.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s < 0:
		return 0
	case s >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return t.UnixNano()
}

func (ix *Index) fillRare(r *row, e *Entry) {
	old := r.rare
	many := len(e.Labels) > inlineLabels
	if e.Status == nil && e.Extra == nil && e.Claim == nil && !many {
		if old != 0 {
			ix.rares.drop(old)
		}
		r.rare = 0
		return
	}
	if old == 0 {
		old = ix.rares.alloc()
	}
	x := rare{status: e.Status, extra: e.Extra}
	if many {
		x.labels = e.Labels
	}
	if e.Claim != nil {
		c := *e.Claim
		x.claim = &c
	}
	*ix.rares.at(old) = x
	r.rare = old
}

// empty gives back everything that the row refers to.
func (ix *Index) empty(r *row) {
	ix.names.release(r.name)
	for _, h := range r.labels {
		ix.labels.release(h)
	}
	if r.rare != 0 {
		ix.rares.drop(r.rare)
	}
}

// show writes the row into e, whose labels are appended to the given ones; it
// returns the longer list.
func (ix *Index) show(r *row, e *Entry, labels []job.Label) []job.Label {
	*e = Entry{
		ID: r.ID, Name: ix.names.value(r.name), Priority: r.Priority,
		OperationPriority: r.OperationPriority, Score: r.Score,
		CreatedAt: time.UnixMicro(r.CreatedAt).UTC(), ModifiedAt: time.UnixMicro(r.modified).UTC(),
		Sequence: r.Sequence, MaxAttempts: r.maxAttempts, Attempt: r.attempt,
		Version: r.version, Position: r.position, Held: r.flags&heldBack != 0,
	}
	if r.notBefore != 0 {
		e.NotBefore = time.Unix(0, r.notBefore).UTC()
	}
	if h := ix.groupOf(r); h != 0 {
		e.Group = ix.keys.groups.at(h).Group
	}
	if r.nlabels > 0 {
		start := len(labels)
		for _, h := range r.labels[:r.nlabels] {
			labels = append(labels, ix.labels.value(h))
		}
		e.Labels = labels[start:len(labels):len(labels)]
	}
	if r.rare != 0 {
		x := ix.rares.at(r.rare)
		e.Status, e.Extra, e.Claim = x.status, x.extra, x.claim
		if x.labels != nil {
			e.Labels = x.labels
		}
	}
	return labels
}

// snapshot returns a copy of the row that stays as it is.
func (ix *Index) snapshot(r *row) *Entry {
	e := new(Entry)
	var labels []job.Label
	if r.nlabels > 0 {
		labels = make([]job.Label, 0, r.nlabels)
	}
	ix.show(r, e, labels)
	return e
}
