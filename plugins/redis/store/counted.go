package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// others reports whether other programs have posted or ended jobs that our records do not
// have so, given how many posts of theirs there had been before.
func (t *foreignCount) others(before int64) bool {
	return t.listed != t.open || t.trashed != t.known || t.unreconciled() != before
}

// difference says what others tells by, for people.
func (t *foreignCount) difference() string {
	return fmt.Sprintf("%d jobs where boardd has %d, %d in the trash where it has %d, and %d posts that are not its own",
		t.listed, t.open, t.trashed, t.known, t.unreconciled())
}

// countReads are the reads of a foreignCount, and of the board's last change.
type countReads struct {
	head                   *redis.SliceCmd
	sequence               *redis.StringCmd
	listed, trashed, known *redis.IntCmd
}

func readCounts(ctx context.Context, p redis.Pipeliner, k *keys) countReads {
	return countReads{
		head: p.HMGet(ctx, k.head, "open", "posts", "settled", "generation", "position"), sequence: p.Get(ctx, k.sequence),
		listed: p.HLen(ctx, k.listings), trashed: p.HLen(ctx, k.trash), known: p.ZCard(ctx, k.trashBy),
	}
}

// err returns why they could not be read.
func (r *countReads) err() error {
	if err := r.sequence.Err(); err != nil && !errors.Is(err, redis.Nil) { // absent: nobody has posted
		return err
	}
	return cmp.Or(r.head.Err(), r.listed.Err(), r.trashed.Err(), r.known.Err())
}

func (r *countReads) count() foreignCount {
	t := foreignCount{
		open: parseInt(string(value(r.head, 0))), posts: parseInt(string(value(r.head, 1))), reconciled: parseInt(string(value(r.head, 2))),
		listed: r.listed.Val(), trashed: r.trashed.Val(), known: r.known.Val(),
	}
	t.sequence, _ = r.sequence.Int64()
	return t
}

// at is the board's generation and the position of its last change.
func (r *countReads) at() [2]string {
	return [2]string{string(value(r.head, 3)), string(value(r.head, 4))}
}

func (s *sweep) count(ctx context.Context) (foreignCount, error) {
	var reads countReads
	s.pace.busy += tripCost
	err := s.board.atOnce(ctx, s.opening, func(p redis.Pipeliner) error {
		reads = readCounts(ctx, p, &s.opening.keys)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return foreignCount{}, readFailed(ctx, err)
	}
	s.counted = time.Now()
	return reads.count(), nil
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
