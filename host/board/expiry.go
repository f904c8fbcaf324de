package board

import (
	"context"
	"sync"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// expiryRetry is how long to wait before a claim whose end the store could not
// confirm is looked at again.
const expiryRetry = time.Second

// expireForever makes jobs ready whose time has come, ends claims whose
// lease ran out, and has policies asked again that failed while calls wait. It sleeps
// until the index knows of something.
func (b *Board) expireForever(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var judging sync.WaitGroup // apart, since a policy takes its time
	defer judging.Wait()
	for {
		select {
		case <-timer.C:
		case <-b.index.DueSooner():
		case <-ctx.Done():
			return
		}
		now := time.Now()
		if lapses := b.index.Tick(now); len(lapses) > 0 {
			b.expire(ctx, lapses)
		}
		for _, c := range b.index.Failed(now) {
			judging.Go(func() { b.index.Rebuild(ctx, c) })
		}
		if next, ok := b.index.Next(); ok {
			timer.Reset(min(max(time.Until(next), 0), ClockLook))
		} else {
			timer.Stop()
		}
	}
}

// ClockLook is the time between two looks at the clock while something is due by it, at most, on an
// open board or one that rests: timers stand still while a machine is suspended, and know nothing of
// a clock that is set.
const ClockLook = time.Minute

// expire asks the store to end claims whose lease seems to have run out. The
// store decides; what it refuses because of time is looked at again when it
// says.
func (b *Board) expire(ctx context.Context, lapses []index.Lapse) {
	opened := b.readiness.opened.Load()
	if opened == nil || b.spec.Observe {
		if !b.spec.Observe {
			b.lookAgain(lapses)
		}
		return
	}
	for len(lapses) > 0 && ctx.Err() == nil {
		n := min(len(lapses), MaxBatch)
		b.expirePart(ctx, opened, lapses[:n])
		lapses = lapses[n:]
	}
}

func (b *Board) lookAgain(lapses []index.Lapse) {
	at := time.Now().Add(expiryRetry)
	for i := range lapses {
		b.index.Again(lapses[i].ID, at)
	}
}

func (b *Board) expirePart(ctx context.Context, opened *driver.BoardStatus, lapses []index.Lapse) {
	a := &alteration{board: b, opened: opened, ids: make([]job.ID, len(lapses)), errs: make([]error, len(lapses))}
	for i := range lapses {
		a.ids[i] = lapses[i].ID
	}
	a.enough = func(_ int, s *currentJob) bool { return s != nil }
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		if s == nil || s.entry.Claim == nil || s.entry.Claim.Token != lapses[i].Claim.Token {
			return driver.Op{}, notFound(a.ids[i]) // it ended in another way
		}
		return b.expireOp(s), nil
	}
	a.done = func(i int, _ *currentJob, r *driver.Result) {
		count(r, &b.metrics.Expired)
		switch r.Kind {
		case job.Precondition:
			b.index.Again(a.ids[i], time.Now().Add(max(r.Remaining, time.Millisecond)))
		case job.Unavailable, job.OutcomeUnknown, job.Interrupted, job.Internal, job.Corrupt:
			b.index.Again(a.ids[i], time.Now().Add(expiryRetry))
		case job.LeaseLost, job.NotFound:
			if r.Record == nil {
				b.reread(ctx, a.ids[i])
			}
		default:
		}
	}
	ctx, cancel := context.WithTimeout(ctx, untold)
	defer cancel()
	if err := a.run(ctx); err != nil {
		b.lookAgain(lapses)
	}
	for i, err := range a.errs {
		if job.KindOf(err) == job.Unavailable {
			b.index.Again(a.ids[i], time.Now().Add(expiryRetry))
		}
	}
}

// TimeoutReason is why a claim ended that stood for as long as its job's timeout lets it.
const TimeoutReason = "timeout"

func (b *Board) expireOp(s *currentJob) driver.Op {
	after, reason := s.status, "the lease of "+s.entry.Claim.Owner+" ran out"
	if timedOut(s.entry) {
		reason = TimeoutReason
	}
	if s.entry.Claim.Foreign {
		after.Attempt++ // nobody counted it when it was claimed
	}
	wait := time.Duration(0)
	if s.entry.Claim.Foreign || !s.loseUnbegun(&after) {
		wait = b.backoff(max(after.Attempt, 1))
	}
	op := b.lose(driver.Op{Kind: driver.Release, Precondition: driver.Lapsed, Token: s.entry.Claim.Token}, s, after, reason, wait)
	if op.Kind == driver.Release {
		op.Event = job.Expired
	}
	return op
}

// reread corrects what the index knows of jobs.
func (b *Board) reread(ctx context.Context, ids ...job.ID) {
	if len(ids) == 0 {
		return
	}
	_, _ = b.readNoted(ctx, ids, 0, b.absorb) // where it fails, the watch tells, or the next try
}

// resolve ends claims among the records whose lease ran out, and reads those
// again.
func (b *Board) resolve(ctx context.Context, records []driver.Record, parts driver.Parts) error {
	var ids []job.ID
	var at []int
	var lapses []index.Lapse
	for i := range records {
		h := records[i].Holder
		if records[i].State != job.Claimed || h == nil || h.NoExpiry || h.Remaining > 0 {
			continue
		}
		b.absorb(&records[i])
		ids, at = append(ids, records[i].Posting.ID), append(at, i)
		lapses = append(lapses, index.Lapse{ID: records[i].Posting.ID, Claim: index.Claim{Owner: h.Owner, Token: h.Token, Foreign: h.Foreign}})
	}
	if len(ids) == 0 {
		return nil
	}
	b.expire(ctx, lapses)
	again, err := b.read(ctx, ids, parts)
	if err != nil {
		return err
	}
	for i, r := range again {
		records[at[i]] = r
	}
	return nil
}
