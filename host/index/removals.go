package index

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// removals remembers the jobs that went away, so that older news of one cannot
// bring it back.
type removals struct {
	at    map[job.ID]driver.Position
	queue []removal // as they came, which is nearly by position
	head  int
}

type removal struct {
	id       job.ID
	position driver.Position
}

// knows reports whether the job was removed at the position or later.
func (m *removals) knows(id job.ID, position driver.Position) bool {
	at, ok := m.at[id]
	return ok && position <= at
}

func (m *removals) add(id job.ID, position driver.Position) {
	m.at[id] = position
	m.queue = append(m.queue, removal{id, position})
}

// forget drops what is no newer than the position, up to max entries; it
// reports whether it is done. An entry that came before an older one may stay
// until that is passed as well.
func (m *removals) forget(upTo driver.Position, maximum int) bool {
	for ; m.head < len(m.queue) && m.queue[m.head].position <= upTo; m.head++ {
		if maximum--; maximum < 0 {
			return false
		}
		// The same job may have been removed once more, later.
		if r := m.queue[m.head]; m.at[r.id] == r.position {
			delete(m.at, r.id)
		}
	}
	switch {
	case m.head == 0:
	case m.head == len(m.queue):
		m.clear() // an emptied map would keep its memory
	case m.head > len(m.queue)/2:
		m.queue = append([]removal(nil), m.queue[m.head:]...)
		m.head = 0
	}
	return true
}

func (m *removals) clear() { *m = removals{at: make(map[job.ID]driver.Position)} }

// Forget says that no news up to this position can come any more: the memory of
// jobs removed until then is dropped. While a Sync is under way, whose entries
// are old, it waits for its end.
func (ix *Index) Forget(upTo driver.Position) {
	for done := false; !done; {
		ix.mu.Lock()
		if ix.sync != nil {
			ix.sync.forget = max(ix.sync.forget, upTo)
			ix.mu.Unlock()
			return
		}
		done = ix.removed.forget(upTo, slice)
		ix.mu.Unlock()
	}
}
