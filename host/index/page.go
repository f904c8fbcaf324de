package index

import (
	"math"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// defaultVisit is PageRequest.Visit where it is 0.
const defaultVisit = 4096

// pageSlice is how many entries a page looks at before it releases the lock for others.
const pageSlice = 256

// Page returns a part of the open jobs in claim order. Match is called off the
// lock.
func (ix *Index) Page(req PageRequest) Page {
	var p Page
	from := progress{}
	if req.After != nil {
		from = progress{true, *req.After}
		p.Last = *req.After
	}
	visits := req.Visit
	if visits <= 0 {
		visits = defaultVisit
	}
	var part []*Entry
	for {
		var more bool
		part, from, more = ix.pagePart(req, from, min(visits, pageSlice), part[:0])
		for i, e := range part {
			if req.Match != nil && !req.Match(e) {
				continue
			}
			p.Entries = append(p.Entries, e)
			if len(p.Entries) == req.Limit {
				p.Last, p.More = e.Order(), more || i < len(part)-1
				return p
			}
		}
		p.Last, p.More = from.reached, more
		if visits -= pageSlice; !more || visits <= 0 {
			return p
		}
	}
}

// CopyTo puts the open jobs into another index. What changes meanwhile may be missing there.
func (ix *Index) CopyTo(to *Index) {
	req := PageRequest{Unclaimed: true, Claimed: true, Limit: slice, Visit: slice}
	for more := true; more; {
		p := ix.Page(req)
		to.PutAll(p.Entries)
		last := p.Last
		req.After, more = &last, p.More
	}
}

// pagePart looks at up to so many entries; from moves to the last of them.
func (ix *Index) pagePart(req PageRequest, from progress, visits int, part []*Entry) ([]*Entry, progress, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	more := false
	next := from
	ix.after(ix.all, from, func(_ uint32, r *row) bool {
		if visits == 0 {
			more = true
			return false
		}
		visits--
		next = progress{true, r.Order}
		if r.place == claimed && req.Claimed || r.place != claimed && req.Unclaimed {
			part = append(part, ix.snapshot(r))
		}
		return true
	})
	return part, next, more
}

// Rank returns how many ready jobs of the class come before the job. It is false
// if the job is not ready, or not for this class, or the class is not
// remembered.
func (ix *Index) Rank(id job.ID, class *Class) (int64, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	h, ok := ix.ids.get(id)
	if !ok {
		return 0, false
	}
	c, r := ix.classes.current(class), ix.rows.at(h)
	switch {
	case c.ready == nil, r.place != ready && r.place != reserved:
		return 0, false
	case c.slot != everySlot && !r.verdicts.allows(c.slot):
		return 0, false
	}
	return int64(c.ready.before(h)), true
}

// ageGroups bounds the groups that oldestIn looks into, and ageMore the jobs that it looks at
// besides the first of each.
const (
	ageGroups = 1024
	ageMore   = 1024
)

// oldestReady returns since when the ready job could be claimed that could be for the longest
// time, in microseconds.
func (ix *Index) oldestReady() int64 {
	oldest := ix.oldestIn(ix.ready, ix.readySince)
	for h := range ix.reserved {
		oldest = min(oldest, ix.readySince(ix.rows.at(h)))
	}
	return oldest
}

// readySince returns since when a ready job could be claimed, in microseconds: since it was made,
// since the time that it had to wait for, or since it was given back or changed otherwise.
func (ix *Index) readySince(r *row) int64 {
	if r.rare != 0 {
		if since := ix.rares.at(r.rare).readySince; since != 0 {
			return since
		}
	}
	return max(r.CreatedAt, r.modified, r.notBefore/int64(time.Microsecond))
}

// staysReady returns since when a row's job could be claimed, if e is the next change of it and
// leaves it to be claimed, as one of its priority does; else 0.
func (ix *Index) staysReady(r *row, e *Entry, now time.Time) int64 {
	was := r.place == ready || r.place == reserved
	is := e.Claim == nil && !e.Held && nanos(e.NotBefore) <= now.UnixNano()
	if was && is && r.isOf(e) && e.Version == r.version+1 {
		return ix.readySince(r)
	}
	return 0
}

// OldestOpen returns when the oldest open job was made; zero: there is none.
func (ix *Index) OldestOpen() time.Time {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.all.len() == 0 {
		return time.Time{}
	}
	return time.UnixMicro(ix.oldestIn(ix.all, madeAt)).UTC()
}

func madeAt(r *row) int64 { return r.CreatedAt }

// oldestIn returns the earliest of a set's times, in microseconds, of which none is of before its
// job was made. Jobs of equal rank are in order of age: so of each rank they are looked at until
// one was made after the earliest time so far. With more than ageGroups ranks, only those are
// looked into, and when ageMore jobs were looked at, only the first of each.
func (ix *Index) oldestIn(set *ordered, of func(*row) int64) int64 {
	oldest, more := int64(math.MaxInt64), ageMore
	h, ok := set.min()
	for range ageGroups {
		if !ok {
			break
		}
		rank := ix.rows.at(h).Order
		set.from(h, func(next uint32) bool {
			r := ix.rows.at(next)
			if !r.Alike(&rank) || r.CreatedAt >= oldest || next != h && more == 0 {
				return false
			}
			if next != h {
				more--
			}
			oldest = min(oldest, of(r))
			return true
		})
		ix.rows.at(pivot).move(rank.LastAlike())
		ok = false
		set.from(pivot, func(next uint32) bool {
			h, ok = next, true
			return false
		})
	}
	return oldest
}
