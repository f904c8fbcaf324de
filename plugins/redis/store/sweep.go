package store

import (
	"context"
	_ "embed"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

//go:embed lua/sweep.lua
var sweepLua string

var sweepScript = newScript(sweepLua)

// How other programs' changes are searched for while somebody watches a board.
const (
	// SweepRate is how many jobs a second are looked at, at most.
	SweepRate = 50_000

	sweepTime  = 800 * time.Millisecond // between two searches, if the jobs are few
	sweepRest  = 10 * time.Second       // likewise, where notifications tell of claims
	wholeTime  = time.Minute            // between two that do not rely on what is counted
	sweepCount = 100                    // jobs looked at in one step
)

// A sweep searches one board.
type sweep struct {
	board    *board
	standing *standing
	strange  map[string]int64 // fields of listings and trash that are no uuids
	notices  *notices
	foreign  int64     // posts of other programs, as last seen
	next     time.Time // when all claims are to be looked at again
	whole    time.Time // when everything is
}

// startSweep begins to search, if nobody has yet; what it returns takes that
// back.
func (b *board) startSweep(st *standing) func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watch++
	if b.watch == 1 {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		b.sweep = func() { cancel(); <-done }
		b.store.work.Go(func() {
			defer close(done)
			b.runSweep(ctx, st)
		})
	}
	return func() {
		b.mu.Lock()
		b.watch--
		stop := b.sweep
		if b.watch > 0 {
			stop = nil
		} else {
			b.sweep = nil
		}
		b.mu.Unlock()
		if stop != nil {
			stop()
		}
	}
}

func (b *board) runSweep(ctx context.Context, st *standing) {
	s := &sweep{board: b, standing: st, strange: map[string]int64{}, foreign: -1}
	s.notices = b.store.listen(ctx, &st.keys)
	defer s.notices.stop()
	logged := false
	for {
		err := s.round(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !logged:
			b.store.logger.Warn("other programs' changes cannot be looked for", "board", b.name, "error", err)
		}
		logged = err != nil
		select {
		case <-b.store.closing:
			return
		case <-st.stale:
			return
		case <-b.dropped:
			return
		default:
		}
		if s.settleNotices(ctx, sweepTime) != nil {
			return
		}
	}
}

// A tally is what tells that other programs posted or ended jobs.
type tally struct {
	open, posts      int64 // by our own records
	listed, sequence int64 // by TaskFlow's
	trashed, known   int64
}

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
	return t, nil
}

// round looks where something may have changed.
func (s *sweep) round(ctx context.Context) error {
	t, err := s.count(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	foreign := t.sequence - t.posts
	if t.listed != t.open+s.strange["listings"] || foreign != s.foreign || begun.After(s.whole) {
		if err := s.pass(ctx, "listings"); err != nil {
			return err
		}
		if err := s.pass(ctx, "jobs"); err != nil {
			return err
		}
		s.foreign, s.whole = foreign, begun.Add(wholeTime)
	} else if begun.After(s.next) {
		if err := s.pass(ctx, "claims"); err != nil {
			return err
		}
		s.next = begun
		if s.notices.on() {
			s.next = begun.Add(sweepRest)
		}
	}
	if t.trashed != t.known+s.strange["trash"] {
		return s.pass(ctx, "trash")
	}
	return nil
}

// pass goes once through a hash, step by step, and settles what it finds.
func (s *sweep) pass(ctx context.Context, what string) error {
	cursor, strange := "0", int64(0)
	for {
		begun := time.Now()
		r, err := s.step(ctx, what, cursor, sweepCount)
		if err != nil {
			return err
		}
		strange += r.strange
		if err := s.settle(ctx, r.found); err != nil {
			return err
		}
		if cursor = r.cursor; cursor == "0" {
			s.strange[what] = strange
			if what == "listings" {
				s.board.foundStrange(strange)
			}
			return nil
		}
		least := time.Duration(r.looked) * time.Second / SweepRate
		if err := sleep.For(ctx, least-time.Since(begun)); err != nil {
			return err
		}
	}
}

// A stepResult is what a step of the search found.
type stepResult struct {
	cursor  string
	looked  int64
	strange int64
	found   []string
}

func (s *sweep) step(ctx context.Context, what string, args ...any) (stepResult, error) {
	k := &s.standing.keys
	all := append([]any{k.prefix, s.standing.generation, what}, args...)
	reply, err := sweepScript.run(ctx, s.board.store.client, []string{k.jobs, k.listings, k.trash}, all...).Slice()
	if err != nil {
		return stepResult{}, readFailed(ctx, err)
	}
	if len(reply) != 4 {
		return stepResult{}, job.Errorf(job.Internal, "the answer to a search cannot be read")
	}
	var r stepResult
	r.cursor, _ = reply[0].(string)
	r.looked, _ = reply[1].(int64)
	r.strange, _ = reply[2].(int64)
	list, _ := reply[3].([]any)
	for _, id := range list {
		if text, ok := id.(string); ok {
			r.found = append(r.found, text)
		}
	}
	return r, nil
}

// settle has our own records follow what other programs did to jobs, and
// watchers told of it.
func (s *sweep) settle(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		n := min(maxScriptOps, len(ids))
		var ops []any
		var settled []string
		for _, id := range ids[:n] {
			if _, err := job.ParseID(id); err == nil {
				ops, settled = append(ops, settleOp(id)), append(settled, id)
			}
		}
		answers, _, err := s.board.script(ctx, s.standing, ops)
		if err != nil {
			return err
		}
		if err := s.readNew(ctx, settled, answers); err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

// settleOp packs the op of the script that settles one job.
func settleOp(id string) []byte { return bareOp(opSettle, id, "") }

// settleNotices looks at the jobs that notifications named, for a while.
func (s *sweep) settleNotices(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	for {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := sleep.For(ctx, min(left, noticeTime)); err != nil {
			return err
		}
		ids, more := s.notices.take()
		if more {
			s.next = time.Time{}
		}
		if len(ids) == 0 {
			continue
		}
		args := make([]any, len(ids))
		for i, id := range ids {
			args[i] = id
		}
		r, err := s.step(ctx, "ids", args...)
		if err == nil {
			err = s.settle(ctx, r.found)
		}
		if err != nil {
			s.board.store.logger.Debug("jobs that changed cannot be looked at", "board", s.board.name, "error", err)
			s.next = time.Time{}
		}
	}
}

// shift turns a position of Redis into one for this host's watchers, and unshift
// back: an observed board has changes that only this host counts.
func (b *board) shift(position uint64) uint64 { return position + b.virtual.Load() }

func (b *board) unshift(position uint64) uint64 { return position - min(b.virtual.Load(), position) }
