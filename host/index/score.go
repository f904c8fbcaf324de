package index

import "context"

// A Scorer writes the Score of each entry. It is called off the lock, from
// several goroutines, and must not put or take jobs. An entry's Score is what the
// index knew before, 0 for a job that is new: what a scorer that fails may leave
// as it is. The entries are only lent, as a Judge's are.
type Scorer func(entries []*Entry)

// scoring is a scorer from when it was set, or set again, until the next.
type scoring struct {
	serial uint32
	score  Scorer
}

func (s *scoring) number() uint32 {
	if s == nil {
		return 0
	}
	return s.serial
}

// SetScorer has the scores of all jobs made by a scorer from now on. A job that
// is put is scored before it has a place; the others keep theirs until Rescore
// comes by.
func (ix *Index) SetScorer(score Scorer) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.scoring = &scoring{serial: ix.scoring.number() + 1, score: score}
}

// Stale says that no score holds any more, though the scorer is the same.
func (ix *Index) Stale() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.scoring != nil {
		ix.scoring = &scoring{serial: ix.scoring.serial + 1, score: ix.scoring.score}
	}
}

// lockScored scores those of the entries that need it and returns with the lock
// held, and with what they were scored by.
func (ix *Index) lockScored(entries []*Entry) *scoring {
	for done := (*scoring)(nil); ; {
		ix.mu.Lock()
		s := ix.scoring
		if s == done || s == nil {
			return s
		}
		var left []*Entry
		for _, e := range entries {
			if !ix.keepScore(e, s) {
				left = append(left, e)
			}
		}
		if len(left) == 0 {
			return s
		}
		ix.mu.Unlock()
		s.score(left)
		done = s
	}
}

// keepScore gives the entry the score that its job has. It reports whether that
// is still right: a claimed job keeps its place, and so does one of which nothing
// changed that a policy sees.
func (ix *Index) keepScore(e *Entry, s *scoring) bool {
	h, known := ix.ids.get(e.ID)
	if !known {
		e.Score = 0
		return false
	}
	r := ix.rows.at(h)
	e.Score = r.score
	switch {
	case r.scored != s.serial:
		return false
	case e.Claim != nil:
		return true
	}
	return r.place != claimed && e.Priority == r.priority && e.OperationPriority == r.operationPriority &&
		e.Attempt == r.attempt && e.MaxAttempts == r.maxAttempts && nanos(e.NotBefore) == r.notBefore
}

// Rescore brings every job to where the present scorer wants it, in small steps
// between which others go on. It returns early when ctx ends or the scorer is
// replaced.
func (ix *Index) Rescore(ctx context.Context) error {
	ix.mu.Lock()
	s := ix.scoring
	ix.mu.Unlock()
	if s == nil {
		return nil
	}
	b := batches.Get().(*batch)
	defer batches.Put(b)
	for from, more := uint32(1), true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if from, more = ix.gatherUnscored(s, from, b); len(b.refs) == 0 {
			continue
		}
		s.score(b.entries)
		for at := 0; at < len(b.refs); at += burst {
			if !ix.moveScored(s, b, at, min(at+burst, len(b.refs))) {
				return nil
			}
		}
	}
	return nil
}

// gatherUnscored takes the next rows whose score is not of this scoring.
func (ix *Index) gatherUnscored(s *scoring, from uint32, b *batch) (next uint32, more bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	b.reset()
	if ix.scoring != s {
		return from, false
	}
	end := ix.rows.end()
	for visited := 0; from < end && len(b.refs) < slice && visited < 8*slice; visited++ {
		if r := ix.rows.peek(from); r != nil && r.place != vacant && r.scored != s.serial {
			b.add(ix, from, r)
		}
		from++
	}
	return from, from < end
}

// moveScored gives rows their new places. A row that was changed meanwhile was
// scored by whoever changed it. It reports whether the scoring is still the
// present one.
func (ix *Index) moveScored(s *scoring, b *batch, from, to int) bool {
	ix.mu.Lock()
	if ix.scoring != s {
		ix.mu.Unlock()
		return false
	}
	moved := false
	for i := from; i < to; i++ {
		ref, e := b.refs[i], b.entries[i]
		r := ix.rows.peek(ref.row)
		if r == nil || r.id != e.ID || r.place == vacant || r.scored == s.serial {
			continue
		}
		r.scored = s.serial
		if r.score != e.Score {
			ix.reorder(ref.row, r, e.Score)
			moved = true
		}
	}
	if moved {
		ix.announce()
	}
	ticket := ix.docket.ticket()
	ix.mu.Unlock()
	_ = ix.settle(context.Background(), ticket) // an error is the end of the context
	return true
}

// reorder gives a row another score, and with it another place in each set that
// it is in. A class that is being built may have passed its new place already, so
// that it has to be judged by itself.
func (ix *Index) reorder(h uint32, r *row, score int64) {
	shown := r.place == ready
	if shown {
		ix.hide(h, r)
	}
	ix.all.drop(h)
	r.score = score
	ix.all.add(h)
	if !shown {
		return
	}
	ix.ready.add(h)
	for c := range ix.crowd.of(r.allowed) {
		c.ready.add(h)
	}
	if ix.crowd.active&^r.judged != 0 {
		ix.docket.queue(h, r.turn)
	}
}
