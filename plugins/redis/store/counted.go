package store

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A tally is what tells that other programs posted or ended jobs.
type tally struct {
	open, posts      int64 // by our own records
	listed, sequence int64 // by TaskFlow's
	trashed, known   int64
}

// surplus is how many more jobs TaskFlow has, and how many more posts it has counted.
func (t *tally) surplus() [2]int64 { return [2]int64{t.listed - t.open, t.sequence - t.posts} }

func (s *sweep) count(ctx context.Context) (tally, error) {
	k := &s.standing.keys
	var head *redis.SliceCmd
	var sequence *redis.StringCmd
	var listed, trashed, known *redis.IntCmd
	_, err := s.board.store.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		head, sequence = p.HMGet(ctx, k.head, "open", "posts"), p.Get(ctx, k.sequence)
		listed, trashed, known = p.HLen(ctx, k.listings), p.HLen(ctx, k.trash), p.ZCard(ctx, k.trashBy)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return tally{}, readFailed(ctx, err)
	}
	t := tally{
		open: parseInt(string(value(head, 0))), posts: parseInt(string(value(head, 1))),
		listed: listed.Val(), trashed: trashed.Val(), known: known.Val(),
	}
	t.sequence, _ = sequence.Int64() // absent: nobody has posted
	s.counted = time.Now()
	return t, nil
}

// strangeListed is how many fields of the board are no jobs.
func (s *sweep) strangeListed() int64 { return s.strange[s.standing.keys.listings] }

// more is how many more jobs TaskFlow has on the board than our records.
func (s *sweep) more(t *tally) int64 { return t.listed - t.open - s.strangeListed() }

// findCounted looks for jobs that other programs posted or ended, as far as the numbers
// tell that there are any; with news only if they tell something else than they did
// after the last such search. There is haste: somebody may wait for them.
func (s *sweep) findCounted(ctx context.Context, news bool) (t tally, err error) {
	if t, err = s.count(ctx); err != nil || s.whole.IsZero() || news && t.surplus() == s.surplus {
		return t, err // without whole everything is about to be looked at
	}
	s.pace.hurry = true
	defer func() { s.pace.hurry, s.surplus = false, t.surplus() }()
	more, foreign := s.more(&t), t.sequence-t.posts
	if more == 0 && foreign == s.foreign {
		return t, nil
	}
	var found int64
	switch posted := max(foreign-s.foreign, more, 0); {
	case foreign < s.foreign: // somebody set TaskFlow's number of posts back
		err, found = s.listings(ctx, 0), max(more, 0)
	case posted == 0 && !s.slim():
		return s.findHidden(ctx, t, -1)
	default:
		found, err = s.survey(ctx, posted, posted-more)
	}
	if err != nil {
		return t, err
	}
	s.foreign = foreign
	if t, err = s.count(ctx); err != nil {
		return t, err
	}
	return s.findHidden(ctx, t, more-found)
}

// findHidden looks for what a survey should have found and did not, given how many more
// jobs there should have been: one that we were acquainted with ended, and came back as
// another program's post, or one ended that we were not acquainted with.
func (s *sweep) findHidden(ctx context.Context, t tally, missing int64) (tally, error) {
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
	return !s.board.store.valued.Load() || s.counts[s.standing.keys.listings] == sweepCount
}
