package index

import "context"

// A Scorer writes the Score of each entry, and its Group where there is a Ranking. It
// is called off the lock, from several goroutines, and must not put or take jobs.
// An entry's Score is what the index knew before, 0 for a job that is new: what a
// scorer that fails may leave as it is. The entries are only lent, as a Judge's are.
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

// SetScorer has jobs scored by a scorer from now on, and keys ranked where there is a
// ranking. A job that is put is scored before it gets its place. The other jobs keep
// their places until Rescore is called, and the keys their ranks until Rerank is.
func (ix *Index) SetScorer(score Scorer, ranking *Ranking) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.scoring = &scoring{serial: ix.scoring.number() + 1, score: score}
	switch {
	case ranking == nil:
		ix.setKeys(nil)
	case ix.keys == nil || ix.keys.by != ranking.By || ix.keys.per != ranking.Per:
		ix.setKeys(newKeys(ranking, ix.scoring.serial))
	}
	if ranking != nil {
		ix.keys.rank = ranking.Rank
		ix.keys.serial++
	}
}

// setKeys puts every job out of its group.
func (ix *Index) setKeys(k *keys) {
	if ix.keys == nil && k == nil {
		return
	}
	ix.keys = k
	ix.everyone.keyQueues = nil
	for _, c := range ix.classes.slots {
		if c != nil {
			c.keyQueues = nil
		}
	}
}

// Stale says that no score and no rank of a key holds any more, though scorer and ranker
// are the same.
func (ix *Index) Stale() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.scoring != nil {
		ix.scoring = &scoring{serial: ix.scoring.serial + 1, score: ix.scoring.score}
	}
	if ix.keys != nil {
		ix.keys.serial++
	}
}

// StaleRanks says that no rank of a key holds any more, though the ranker is the same.
func (ix *Index) StaleRanks() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.keys != nil {
		ix.keys.serial++
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
	e.Score = r.Score
	if !r.isOf(e) {
		e.Score = 0
		return false
	}
	if g := ix.groupOf(r); g != 0 {
		e.Group = ix.keys.groups.at(g).Group
	}
	switch {
	case r.scored != s.serial:
		return false
	case e.Claim != nil:
		return true
	}
	return r.place != claimed && e.Priority == r.Priority && e.OperationPriority == r.OperationPriority &&
		e.Attempt == r.attempt && e.MaxAttempts == r.maxAttempts && nanos(e.NotBefore) == r.notBefore
}

// Rescore has every job scored by the present scorer and moves it to its new place, in
// small steps between which others use the index. It returns early when ctx ends or the scorer is
// replaced.
func (ix *Index) Rescore(ctx context.Context) error {
	ix.mu.Lock()
	s, k := ix.scoring, ix.keys
	ix.mu.Unlock()
	if s == nil {
		return nil
	}
	ix.regroupClaimed()
	if err := ix.rescore(ctx, s, func(*row) bool { return true }); err != nil {
		return err
	}
	ix.mu.Lock()
	if ix.scoring == s && k != nil {
		k.whole = true
	}
	ix.mu.Unlock()
	ix.rankNews()
	return nil
}

// rescore is Rescore for some of the jobs.
func (ix *Index) rescore(ctx context.Context, s *scoring, which func(*row) bool) error {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	for from, more := uint32(1), true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if from, more = ix.gatherUnscored(s, from, b, which); len(b.refs) > 0 && !ix.scoreBatch(s, b) {
			return nil
		}
	}
	return nil
}

// gatherUnscored takes the next rows whose score is not of this scoring.
func (ix *Index) gatherUnscored(s *scoring, from uint32, b *batch, which func(*row) bool) (next uint32, more bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	b.reset()
	if ix.scoring != s {
		return from, false
	}
	end := ix.rows.end()
	for visited := 0; from < end && len(b.refs) < slice && visited < 8*slice; visited++ {
		if r := ix.rows.peek(from); r != nil && r.place != vacant && r.scored != s.serial && which(r) {
			b.add(ix, from, r)
		}
		from++
	}
	return from, from < end
}

// scoreBatch scores rows and gives them their places. It reports whether the
// scoring is still the present one.
func (ix *Index) scoreBatch(s *scoring, b *batch) bool {
	s.score(b.entries)
	for at := 0; at < len(b.refs); at += burst {
		if !ix.moveScored(s, b, at, min(at+burst, len(b.refs))) {
			return false
		}
		ix.rankNews()
	}
	return true
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
		if r == nil || r.ID != e.ID || r.place == vacant || r.scored == s.serial {
			continue
		}
		moved = r.Score != e.Score || moved
		ix.reorder(ref.row, r, e, s)
	}
	if moved {
		ix.announce()
	}
	ticket := ix.pending.ticket()
	ix.mu.Unlock()
	_ = ix.awaitVerdicts(context.Background(), ticket) // an error is the end of the context
	return true
}

// reorder gives a row another score and key, and with them another place in each
// set that it is in. A class that is being built may have passed its new place
// already, so that it has to be judged by itself.
func (ix *Index) reorder(h uint32, r *row, e *Entry, s *scoring) {
	group := ix.groupOf(r)
	same := ix.keys == nil || group != 0 && ix.keys.groups.at(group).Key == e.key()
	if r.Score == e.Score && same {
		r.scored = s.serial
		return
	}
	shown := r.place == ready
	if shown {
		ix.hide(h, r)
	}
	if r.Score != e.Score {
		ix.all.drop(h)
		r.Score = e.Score
		ix.all.add(h)
	}
	ix.count(r, r.place, -1)
	ix.regroup(r, e.key(), s)
	ix.count(r, r.place, 1)
	if !same {
		ix.served(r, nil)
	}
	ix.tell(ix.groupOf(r))
	if !shown {
		return
	}
	ix.expose(h, r)
	if !same {
		r.flags &^= woke // who was told of it may have found nothing, since it was in no group
		ix.wake(h, r)
	}
	if r.verdicts.lacks(ix.classes.active) {
		ix.pending.queue(h, r.turn)
	}
}

// regroupClaimed puts every claimed job into its group, when the order has begun to
// depend on counts: before that nobody knows how many are running.
func (ix *Index) regroupClaimed() {
	ix.mu.Lock()
	s, k := ix.scoring, ix.keys
	done := k == nil || k.counted
	ix.mu.Unlock()
	if done {
		return
	}
	_ = ix.rescore(context.Background(), s, func(r *row) bool { return r.place == claimed || r.place == reserved })
	ix.mu.Lock()
	defer ix.mu.Unlock()
	k.counted = k.counted || ix.scoring == s
}

// regroupSome puts the first jobs of a class that are in no group yet into theirs.
// It reports whether there was any.
func (ix *Index) regroupSome(c *Class) bool {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	b.reset()
	ix.mu.Lock()
	s := ix.scoring
	if c.ready == nil || ix.keys == nil {
		ix.mu.Unlock()
		return false
	}
	visited := 0
	c.ready.tree.Scan(func(h uint32) bool {
		if r := ix.rows.at(h); ix.groupOf(r) == 0 {
			b.add(ix, h, r)
		}
		visited++
		return len(b.refs) < slice && visited < 8*slice
	})
	ix.mu.Unlock()
	if len(b.refs) == 0 {
		return false
	}
	ix.scoreBatch(s, b)
	return true
}

// regroupRow puts one job into its group.
func (ix *Index) regroupRow(h uint32) {
	b := batches.Get().(*batch)
	defer batches.Put(b)
	b.reset()
	ix.mu.Lock()
	s, r := ix.scoring, ix.rows.peek(h)
	found := s != nil && r != nil && r.place != vacant && ix.groupOf(r) == 0
	if found {
		b.add(ix, h, r)
	}
	ix.mu.Unlock()
	if found {
		ix.scoreBatch(s, b)
	}
}
