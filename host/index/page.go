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

// ageGroups bounds the groups that oldestIn looks into.
const ageGroups = 1024

// oldestReady returns the creation of the oldest ready job, in microseconds.
func (ix *Index) oldestReady() int64 {
	oldest := ix.oldestIn(ix.ready)
	for h := range ix.reserved {
		oldest = min(oldest, ix.rows.at(h).CreatedAt)
	}
	return oldest
}

// OldestOpen returns when the oldest open job was made; zero: there is none.
func (ix *Index) OldestOpen() time.Time {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.all.len() == 0 {
		return time.Time{}
	}
	return time.UnixMicro(ix.oldestIn(ix.all)).UTC()
}

// oldestIn returns the creation of the oldest job of a set, in microseconds. Jobs of equal
// rank are in order of age, so only the first of each rank is looked at; with more than
// ageGroups ranks, only those.
func (ix *Index) oldestIn(set *ordered) int64 {
	oldest := int64(math.MaxInt64)
	h, ok := set.min()
	for range ageGroups {
		if !ok {
			break
		}
		r := ix.rows.at(h)
		oldest = min(oldest, r.CreatedAt)
		ix.rows.at(pivot).move(r.LastAlike())
		ok = false
		set.from(pivot, func(next uint32) bool {
			h, ok = next, true
			return false
		})
	}
	return oldest
}
