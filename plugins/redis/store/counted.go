package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A foreignCount is what tells that other programs posted or ended jobs.
type foreignCount struct {
	open, posts, reconciled int64 // by our own records; posts are boardd's, reconciled (the field "settled") those that were found
	listed, sequence        int64 // by TaskFlow's
	trashed, known          int64
}

// unreconciled is how many posts of other programs our records have never had: nobody has
// found them yet, or they ended before anybody could.
func (t *foreignCount) unreconciled() int64 { return t.sequence - t.posts - t.reconciled }

// surplus is how many more jobs TaskFlow has, and how many more posts it has counted.
func (t *foreignCount) surplus() [2]int64 { return [2]int64{t.listed - t.open, t.unreconciled()} }

func (s *sweep) count(ctx context.Context) (foreignCount, error) {
	k := &s.opening.keys
	var head *redis.SliceCmd
	var sequence *redis.StringCmd
	var listed, trashed, known *redis.IntCmd
	s.pace.busy += tripCost
	err := s.board.atOnce(ctx, s.opening, func(p redis.Pipeliner) error {
		head, sequence = p.HMGet(ctx, k.head, "open", "posts", "settled"), p.Get(ctx, k.sequence)
		listed, trashed, known = p.HLen(ctx, k.listings), p.HLen(ctx, k.trash), p.ZCard(ctx, k.trashBy)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return foreignCount{}, readFailed(ctx, err)
	}
	t := foreignCount{
		open: parseInt(string(value(head, 0))), posts: parseInt(string(value(head, 1))), reconciled: parseInt(string(value(head, 2))),
		listed: listed.Val(), trashed: trashed.Val(), known: known.Val(),
	}
	t.sequence, _ = sequence.Int64() // absent: nobody has posted
	s.counted = time.Now()
	return t, nil
}

// strangeListed is how many fields of the board are no jobs.
func (s *sweep) strangeListed() int64 { return s.strange[s.opening.keys.listings] }

// more is how many more jobs TaskFlow has on the board than our records.
func (s *sweep) more(t *foreignCount) int64 { return t.listed - t.open - s.strangeListed() }

// findCounted looks for jobs that other programs posted or ended, if the counts show that
// there are any; with news, only if the counts have changed since the last such search. It
// searches in haste (see searchBudget), since somebody may be waiting for these jobs.
func (s *sweep) findCounted(ctx context.Context, news bool) (t foreignCount, err error) {
	if t, err = s.count(ctx); err == nil {
		err = s.fewKeys(ctx, t.listed)
	}
	if err != nil || s.whole.IsZero() || news && t.surplus() == s.surplus {
		return t, err // without whole everything is about to be looked at
	}
	s.pace.hurry = true
	defer func() { s.pace.hurry, s.surplus = false, t.surplus() }()
	more, unseen, setBack := s.more(&t), s.unseen(&t), t.sequence < s.sequence
	s.sequence = t.sequence
	if more == 0 && unseen == 0 && !setBack {
		return t, nil
	}
	var found int64
	var whole bool
	switch posted := max(unseen, more, 0); {
	case setBack:
		s.gone, whole, found = 0, true, max(more, 0)
		err = s.listings(ctx, 0)
	case posted == 0 && !s.slim():
		return s.findHidden(ctx, t, -1)
	default:
		found, whole, err = s.survey(ctx, posted, posted-more)
	}
	if err != nil {
		return t, err
	}
	before := t
	if t, err = s.count(ctx); err != nil {
		return t, err
	}
	if whole {
		s.sawAll(&before, &t)
	}
	return s.findHidden(ctx, t, more-found)
}

// unseen is how many posts of other programs are still to be found.
func (s *sweep) unseen(t *foreignCount) int64 {
	s.gone = min(s.gone, t.unreconciled()) // a job put there by hand is reconciled, and was never counted
	return t.unreconciled() - s.gone
}

// sawAll notes that a search has gone through the whole board: of what was posted before
// it, what has not been found since is gone.
func (s *sweep) sawAll(before, after *foreignCount) {
	s.gone = max(s.gone, before.unreconciled()-(after.reconciled-before.reconciled))
}

// findHidden looks for what a survey should have found and did not, given how many more
// jobs there should have been: one that we knew ended, and came back as
// another program's post, or one ended that we did not know.
func (s *sweep) findHidden(ctx context.Context, t foreignCount, missing int64) (foreignCount, error) {
	var err error
	switch more := s.more(&t); {
	case more > 0 && missing > 0:
		err = s.listings(ctx, more)
	case more < 0 && missing < 0:
		err = s.jobs(ctx, -more)
	default:
		return t, nil
	}
	if err != nil {
		return t, err
	}
	return s.count(ctx)
}

// slim reports whether going through the postings is no more than going through our
// records: they are small, or need not come along.
func (s *sweep) slim() bool {
	return !s.board.store.valued.Load() || s.counts[s.opening.keys.listings] == sweepCount
}
