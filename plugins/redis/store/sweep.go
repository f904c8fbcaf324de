package store

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// When other programs' changes are searched for while somebody watches a board.
const (
	lookTime  = 250 * time.Millisecond // between two looks at the numbers of jobs and posts
	sweepTime = 800 * time.Millisecond // from one search for claims to the next, unless it takes longer
	sweepRest = 10 * time.Second       // likewise, where Redis names the jobs whose claims change
	wholeTime = time.Minute            // between two that do not rely on what is counted
	wholeRest = 4                      // times what either of those took, if that is longer
)

// A sweep searches one board.
type sweep struct {
	board    *board
	opening  *opening
	strange  map[string]int64 // fields of listings and trash that are no uuids, by key
	notices  *notices
	known    *knownJobs
	pace     *pace
	counts   map[string]int  // by hash, how many jobs the next step asks for
	owned    map[string]bool // jobs that have an owner, or had one when they were last looked at
	few      bool            // the database has few keys for so many jobs
	gone     int64           // posts of other programs that ended before anybody saw them
	sequence int64           // TaskFlow's number of posts, as last seen
	noticed  time.Time       // when the jobs that notifications named were last looked at
	counted  time.Time       // when the numbers of jobs and posts were last looked at
	surplus  [2]int64        // as it was after the last such search
	claiming bool            // claims are searched for
	lately   time.Time       // when that last ended
	took     time.Duration   // and how long it took
	next     time.Time       // when all claims are to be looked at again
	whole    time.Time       // when everything is
	kept     time.Time       // when this server last said that it searches
	alone    bool            // it is one whole search, whoever else searches, without a rest
}

// A searching is a search of a board for as long as it is open as it was opened.
type searching struct {
	opening *opening
	cancel  context.CancelFunc
	done    chan struct{} // closed when the search has ended
}

func (s *searching) stop() {
	s.cancel()
	<-s.done
}

// startSweep begins to search, if nobody does yet in the board as it was opened last; what it
// returns takes that back.
func (b *board) startSweep(st *opening) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch++
	if before := b.sweep; before == nil || before.opening.expired() {
		b.store.rounds.join(b, st)
		ctx, cancel := context.WithCancel(context.Background())
		b.sweep = &searching{opening: st, cancel: cancel, done: make(chan struct{})}
		done := b.sweep.done
		b.store.work.Go(func() {
			defer close(done)
			if before != nil {
				before.stop()
			}
			b.searchIfShared(ctx, st)
		})
	}
	return b.endSweep
}

func (b *board) endSweep() {
	b.mu.Lock()
	b.watch--
	last := b.sweep
	if b.watch > 0 {
		last = nil
	} else {
		b.sweep = nil
		b.store.rounds.leave(b)
	}
	b.mu.Unlock()
	if last != nil {
		last.stop()
	}
}

func newSweep(b *board, st *opening) *sweep {
	return &sweep{
		board: b, opening: st, strange: map[string]int64{}, owned: map[string]bool{}, counts: map[string]int{},
		pace: &pace{budget: b.store.budget}, known: newKnownJobs(), notices: newNotices(),
	}
}

// round looks where something may have changed.
func (s *sweep) round(ctx context.Context) error {
	t, err := s.findCounted(ctx, false)
	if err != nil {
		return err
	}
	switch now := time.Now(); {
	case now.After(s.whole):
		err = s.findAll(ctx, t)
	case now.After(s.next):
		err = s.claims(ctx)
	}
	if err == nil && t.trashed != t.known+s.strange[s.opening.keys.trash] {
		err = s.trash(ctx)
	}
	return err
}

// fewKeys finds out whether it is less to go through the keys of the database than
// through the jobs. A user who may not ask goes through the jobs.
func (s *sweep) fewKeys(ctx context.Context, jobs int64) error {
	node, err := s.board.store.nodeOf(ctx, s.opening.keys.jobs)
	if err != nil {
		return readFailed(ctx, err)
	}
	s.pace.busy += tripCost
	n, err := node.DBSize(ctx).Result()
	s.few = err == nil && n <= fewKeys*jobs
	return ctx.Err()
}

// findAll looks for jobs that other programs posted or ended, whatever the numbers say.
func (s *sweep) findAll(ctx context.Context, t foreignCount) error {
	begun := time.Now()
	search := s.known.begin()
	if err := s.listings(ctx, 0); err != nil {
		return err
	}
	now, err := s.count(ctx)
	if err != nil {
		return err
	}
	s.sawAll(&t, &now)
	if err := s.jobs(ctx, 0); err != nil {
		return err
	}
	s.known.keep(search)
	s.whole = time.Now().Add(max(wholeTime, wholeRest*time.Since(begun)))
	return nil
}

// reconcile has our own records follow what other programs did to jobs, and
// watchers told of it.
func (s *sweep) reconcile(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		n := min(maxScriptOps, len(ids))
		var ops []any
		var reconciled []string
		for _, id := range ids[:n] {
			if _, err := job.ParseID(id); err == nil {
				ops, reconciled = append(ops, reconcileOp(id)), append(reconciled, id)
				s.owned[id] = true
			}
		}
		answers, _, err := s.board.script(ctx, s.opening, ops)
		if err != nil {
			return err
		}
		if err := s.readNew(ctx, reconciled, answers); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// reconcileOp packs the op of the script that reconciles one job.
func reconcileOp(id string) []byte { return bareOp(opReconcile, id, "") }

// idle returns how long to wait for the next round.
func (s *sweep) idle() time.Duration {
	d := min(lookTime, time.Until(s.next))
	return max(d, noticeTime, s.pace.rest())
}

// rest waits, and looks meanwhile at the jobs that notifications named. It fails if
// another server searches the board now.
func (s *sweep) rest(ctx context.Context, d time.Duration) error {
	if s.alone {
		return ctx.Err()
	}
	for end := time.Now().Add(d); ; {
		if err := s.keepOn(ctx); err != nil {
			return err
		}
		if now := time.Now(); now.Sub(s.noticed) >= noticeTime {
			s.noticed = now
			s.reconcileNotices(ctx)
		}
		left := time.Until(end)
		if left <= 0 {
			return ctx.Err()
		}
		if err := sleep.For(ctx, min(left, noticeTime)); err != nil {
			return err
		}
	}
}

func (s *sweep) reconcileNotices(ctx context.Context) {
	ids, more := s.notices.take()
	if more {
		s.next = time.Time{}
	}
	if len(ids) == 0 {
		return
	}
	found, err := s.named(ctx, ids)
	if err == nil {
		err = s.reconcile(ctx, found)
	}
	if err != nil {
		s.board.store.logger.Debug("jobs that changed cannot be looked at", "board", s.board.name, "error", err)
		s.next = time.Time{}
	}
}

// shift turns a position of Redis into one for this host's watchers, and unshift
// back: an observed board has changes that only this host counts.
func (b *board) shift(position uint64) uint64 { return position + b.virtual.Load() }

func (b *board) unshift(position uint64) uint64 { return position - min(b.virtual.Load(), position) }
