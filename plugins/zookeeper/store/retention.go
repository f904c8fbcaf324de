package store

import (
	"container/heap"
	"slices"

	"github.com/boardd/boardd/sdk/job"
)

// A retention knows which jobs that are over are remembered, and which of them goes
// next, so that nobody has to go through all jobs to find out.
type retention struct {
	jobs   map[job.ID]retained
	over   map[job.ID]struct{} // those of them that nothing is remembered of any more
	due    markQueue           // by when something of them ends, in Unix milliseconds
	marks  markQueue           // those with a tombstone, by their positions
	finals markQueue           // those with a final record, likewise

	ended, purged   int64 // jobs that ended and are remembered; such as were purged
	marked, records int64 // tombstones of jobs that ended; final records
	bytes           int64 // of final records
}

// retained is what is remembered of one job.
type retained struct {
	position uint64
	purged   bool
	mark     bool // its tombstone
	final    bool // its final record
	size     int64
	due      int64 // when one of the two ends
}

func newRetention() retention {
	return retention{jobs: map[job.ID]retained{}, over: map[job.ID]struct{}{}}
}

// retained says what is remembered of a job; false: it is not over.
func (v *view) retained(at instant) (retained, bool) {
	if v.rec == nil || v.node != "" || v.rec.place != purged && v.rec.place != ended {
		return retained{}, false
	}
	r := retained{position: v.position(), purged: v.rec.place == purged}
	if r.purged {
		r.due = v.rec.changedAt + at.window.Milliseconds()
		r.mark = at.millis() < r.due
		return r, true
	}
	e := v.rec.end
	if e == nil {
		return r, true
	}
	if r.mark = e.remembered(at); r.mark {
		r.due = e.at + at.window.Milliseconds()
	}
	if r.final = e.final(at); r.final {
		r.size = v.size
		if !r.mark || e.until < r.due {
			r.due = e.until
		}
	}
	return r, true
}

// note takes note of how a job stands.
func (r *retention) note(v *view, at instant) {
	old := r.jobs[v.id]
	r.count(old, -1)
	delete(r.jobs, v.id)
	delete(r.over, v.id)
	now, ok := v.retained(at)
	if !ok {
		return
	}
	r.jobs[v.id] = now
	r.count(now, 1)
	if !now.mark && !now.final {
		r.over[v.id] = struct{}{}
		return
	}
	moved := now.position != old.position
	if now.due != old.due {
		heap.Push(&r.due, mark{uint64(now.due), v.id}) //nolint:gosec // it is later than now
	}
	if now.mark && (moved || !old.mark) {
		heap.Push(&r.marks, mark{now.position, v.id})
	}
	if now.final && (moved || !old.final) {
		heap.Push(&r.finals, mark{now.position, v.id})
	}
}

func (r *retention) count(k retained, sign int64) {
	switch {
	case k.purged && k.mark:
		r.purged += sign
	case k.mark:
		r.marked += sign
	}
	if !k.purged && (k.mark || k.final) {
		r.ended += sign
	}
	if k.final {
		r.records += sign
		r.bytes += sign * k.size
	}
}

// refresh notes what has ended until now.
func (r *retention) refresh(jobs map[job.ID]*view, at instant) {
	for len(r.due) > 0 && int64(r.due[0].place) <= at.millis() { //nolint:gosec // it was a time
		m := heap.Pop(&r.due).(mark) //nolint:forcetypeassert // nothing else is in it
		k, known := r.jobs[m.id]
		if !known || uint64(k.due) != m.place { //nolint:gosec // it was a time
			continue // it was noted anew since
		}
		k.due = 0 // so that its next end is queued
		r.jobs[m.id] = k
		r.note(jobs[m.id], at)
	}
}

// oldest calls take for one job after another, those first that are over longest,
// until it returns false. What is in the queue stays there.
func (r *retention) oldest(q *markQueue, has func(retained) bool, take func(job.ID, retained) bool) {
	var kept []mark
	for len(*q) > 0 {
		m := heap.Pop(q).(mark) //nolint:forcetypeassert // nothing else is in it
		k := r.jobs[m.id]
		if k.position != m.place || !has(k) {
			continue // it is no longer true
		}
		kept = append(kept, m)
		if !take(m.id, k) {
			break
		}
	}
	for _, m := range kept {
		heap.Push(q, m)
	}
}

// A markQueue is a heap of marks, the lowest first. An entry that is no longer true is
// passed over when its turn comes.
type markQueue []mark

// Len, Less, Swap, Push and Pop are for package heap.
func (q markQueue) Len() int           { return len(q) }
func (q markQueue) Less(i, k int) bool { return q[i].compare(q[k]) < 0 }
func (q markQueue) Swap(i, k int)      { q[i], q[k] = q[k], q[i] }

// Push adds to the end.
func (q *markQueue) Push(x any) { *q = append(*q, x.(mark)) } //nolint:forcetypeassert // nothing else is in it

// Pop takes the end away.
func (q *markQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// tooMuch returns the jobs to forget and those of which a part has to make room.
// b.mu is held.
func (b *board) tooMuch(at instant) (forget []*view, strip []stripping) {
	r := &b.past.retention
	r.refresh(b.jobs, at)
	for id := range r.over {
		forget = append(forget, b.jobs[id])
	}
	room := map[job.ID]*stripping{}
	part := func(id job.ID) *stripping {
		if room[id] == nil {
			room[id] = &stripping{view: b.jobs[id]}
		}
		return room[id]
	}
	if excess := r.marked + r.purged - b.spec.MaxTombstones; excess > 0 {
		r.oldest(&r.marks, func(k retained) bool { return k.mark }, func(id job.ID, _ retained) bool {
			part(id).mark = true
			excess--
			return excess > 0
		})
	}
	records, bytes := r.records, r.bytes
	full := func() bool {
		return b.spec.MaxFinals > 0 && records > b.spec.MaxFinals || b.spec.MaxFinalBytes > 0 && bytes > b.spec.MaxFinalBytes
	}
	if full() {
		r.oldest(&r.finals, func(k retained) bool { return k.final }, func(id job.ID, k retained) bool {
			part(id).final = true
			records, bytes = records-1, bytes-k.size
			return full()
		})
	}
	for id, s := range room {
		if k := r.jobs[id]; k.purged || (s.mark || !k.mark) && (s.final || !k.final) {
			forget = append(forget, s.view)
		} else {
			strip = append(strip, *s)
		}
	}
	slices.SortFunc(forget, byEnd)
	return forget, strip
}
