package store

import (
	"context"
	"sync"
)

// bad is what of a board's listings cannot be read, as far as this host knows: by
// its last scan of all jobs, and by what it found since.
type bad struct {
	mu      sync.Mutex
	jobs    map[string]struct{}
	strange int64 // fields that are no uuids
}

func (b *bad) count() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.jobs)) + b.strange
}

// replace forgets what was known in favour of what a scan has found.
func (b *bad) replace(fields []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs, b.strange = make(map[string]struct{}, len(fields)), 0
	for _, field := range fields {
		if _, ok := jobNamed(field); !ok {
			b.strange++
		} else {
			b.jobs[field] = struct{}{}
		}
	}
}

// add reports whether that is news.
func (b *bad) add(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.jobs[id]
	if b.jobs == nil {
		b.jobs = map[string]struct{}{}
	}
	b.jobs[id] = struct{}{}
	return !known
}

// remove forgets jobs which have changed.
func (b *bad) remove(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		delete(b.jobs, id)
	}
}

// foundStrange notes how many fields of the listings are no uuids, and reports
// that there are more than before.
func (b *board) foundStrange(n int64) {
	b.bad.mu.Lock()
	before := b.bad.strange
	b.bad.strange = n
	b.bad.mu.Unlock()
	if n > before {
		b.store.logger.Warn("fields of the listings are no uuids in lower case; they are left alone", "board", b.name, "fields", n)
	}
}

// cannotRead notes that a posting on the board cannot be read.
func (b *board) cannotRead(id string, problem error) {
	if b.bad.add(id) {
		b.store.logger.Warn("a posting cannot be read; it is left alone and offered to nobody", "board", b.name, "job", id, "problem", problem)
	}
}

// readNew reads the postings of jobs that a search has just found, so that the
// first op on one need not wait for it, and reports what cannot be read.
func (s *sweep) readNew(ctx context.Context, settled, answers []string) error {
	var ids, others []string
	for n, answer := range answers {
		if id, _ := unreadIn(answer); id != "" {
			ids = append(ids, id)
		} else {
			others = append(others, settled[n])
		}
	}
	s.board.bad.remove(others...)
	for len(ids) > 0 {
		n := min(maxScriptOps/2, len(ids)) // each may be on the board and in the trash
		found, err := s.board.verdicts(ctx, s.standing, ids[:n])
		if err != nil {
			return err
		}
		var ops []any
		for i := range found {
			ops = append(ops, found[i].op())
			if problem := found[i].problem; problem != nil && found[i].listed {
				s.board.cannotRead(found[i].id, problem)
			}
		}
		if _, _, err := s.board.script(ctx, s.standing, ops); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
