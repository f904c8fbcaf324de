package store

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// bad is what of a board's listings cannot be read, as far as this host knows: by
// its last scan of all jobs, and by what it found since.
type bad struct {
	mu      sync.Mutex
	jobs    map[string]string // why, by the fields that are uuids
	strange map[string]string // the same of at most driver.MaxBad other fields,
	others  int64             // of which there are so many
}

// An unreadField is a field that cannot be read as a job.
type unreadField struct{ field, problem string }

func (b *bad) count() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.jobs)) + b.others
}

// list returns what cannot be read, in the order of the fields.
func (b *bad) list(listings string) []driver.BadRecord {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := maps.Clone(b.jobs)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b.strange)
	fields := slices.SortedFunc(maps.Keys(all), strings.Compare)
	var list []driver.BadRecord
	for _, field := range fields[:min(len(fields), driver.MaxBad)] {
		list = append(list, badRecord(listings, field, job.Errorf(job.Corrupt, "%s", all[field])))
	}
	return list
}

// problem returns why a job cannot be read; "" if no reason is known.
func (b *bad) problem(id job.ID) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if why := b.jobs[id.String()]; why != "" {
		return why
	}
	for field, why := range b.strange {
		if other, err := job.ParseID(field); err == nil && other == id {
			return why
		}
	}
	return ""
}

// replace forgets what was known in favour of what a scan has found.
func (b *bad) replace(found []unreadField) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs, b.strange, b.others = make(map[string]string, len(found)), map[string]string{}, 0
	for _, u := range found {
		if _, ok := jobNamed(u.field); ok {
			b.jobs[u.field] = u.problem
			continue
		}
		b.others++
		if len(b.strange) < driver.MaxBad {
			b.strange[u.field] = u.problem
		}
	}
}

// add notes why a job cannot be read, and reports whether that was not known before.
func (b *bad) add(id, problem string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.jobs[id]
	if b.jobs == nil {
		b.jobs = map[string]string{}
	}
	b.jobs[id] = problem
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

// notAUUID is what is wrong with a field of the listings that is not named as TaskFlow
// names jobs.
const notAUUID = "the field is no uuid in lower case"

// foundStrange notes which fields of the listings are no uuids, the first of them by
// name, and reports that there are more than before.
func (b *board) foundStrange(fields []string, n int64) {
	b.bad.mu.Lock()
	before := b.bad.others
	strange := map[string]string{}
	for _, field := range fields {
		strange[field] = notAUUID
		if why := b.bad.strange[field]; why != "" {
			strange[field] = why
		}
	}
	b.bad.strange, b.bad.others = strange, n
	b.bad.mu.Unlock()
	if n > before {
		b.store.logger.Warn("fields of the listings are no uuids in lower case; they are left alone", "board", b.name, "fields", n)
	}
}

// cannotRead notes that a posting on the board cannot be read.
func (b *board) cannotRead(id string, problem error) {
	if b.bad.add(id, problem.Error()) {
		b.store.logger.Warn("a posting cannot be read; it is left alone and offered to nobody", "board", b.name, "job", id, "problem", problem)
	}
}

// readNew reads the postings of jobs that a search has just found, so that the
// first op on one need not wait for it, and reports what cannot be read.
func (s *sweep) readNew(ctx context.Context, reconciled, answers []string) error {
	var ids, others []string
	for n, answer := range answers {
		if id, _ := unreadIn(answer); id != "" {
			ids = append(ids, id)
		} else {
			others = append(others, reconciled[n])
		}
	}
	s.board.bad.remove(others...)
	for len(ids) > 0 {
		n := min(maxScriptOps/2, len(ids)) // each may be on the board and in the trash
		found, err := s.board.verdicts(ctx, s.opening, ids[:n])
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
		if _, _, err := s.board.script(ctx, s.opening, ops); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
