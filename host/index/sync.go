package index

import "github.com/boardd/boardd/sdk/driver"

// A Sync is a new snapshot on its way in. Its entries come by Put and PutAll
// like any news, mixed with live news, and nothing disappears meanwhile.
type Sync struct {
	ix     *Index
	number uint32
	reset  bool
	forget driver.Position
}

// Sync begins a snapshot: from now on every job that is put, or touched, counts
// as seen. The first news of a job that another program claimed is taken as newer than
// that claim: when its claim ended, a driver that was not running need not know, and then
// the job has an earlier position. A Sync that was begun before and not ended is given up: its End does
// nothing.
func (ix *Index) Sync() *Sync { return ix.begin(false) }

// Reset is Sync for a store whose positions may have gone back: the first news
// of each job is taken as newer than everything from before, and what was
// removed is forgotten at once.
func (ix *Index) Reset() *Sync { return ix.begin(true) }

func (ix *Index) begin(reset bool) *Sync {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.syncs++
	s := &Sync{ix: ix, number: ix.syncs, reset: reset}
	if old := ix.sync; old != nil {
		s.reset = reset || old.reset
		s.forget = old.forget
	}
	if reset {
		ix.removed.clear()
		s.forget = 0
	}
	ix.sync = s
	return s
}

// End says that the snapshot is complete as of the position: what was not seen
// and is not newer is removed, after a Reset all that was not seen. It returns
// how many that were. After another Sync was begun it does nothing.
func (s *Sync) End(position driver.Position) int {
	ix, gone := s.ix, 0
	for from, more := uint32(1), true; more; {
		ix.mu.Lock()
		if ix.sync != s {
			ix.mu.Unlock()
			return gone
		}
		end := min(from+slice, ix.rows.end())
		for h := from; h < end; h++ {
			r := ix.rows.peek(h)
			if r == nil || r.place == vacant || r.seen == s.number || (!s.reset && r.position > position) {
				continue
			}
			id := r.ID
			ix.remove(h, r)
			ix.removed.add(id, position)
			gone++
		}
		if from = end; from >= ix.rows.end() {
			more = false
			ix.sync = nil
			if gone > 0 {
				ix.announce()
			}
		}
		ix.mu.Unlock()
		ix.rankNews()
	}
	ix.Forget(s.forget)
	return gone
}
