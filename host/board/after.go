package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// goneTime is how long a job on a shared board has to look done before it counts as
// done: when another program takes a job off the board, a store may need a moment to
// find it in the trash.
const goneTime = 3 * time.Second

// releaseForever ends the hold of jobs whose prerequisites have ended, and cancels
// jobs whose prerequisites ended with another status than required, until ctx ends.
func (b *Board) releaseForever(ctx context.Context) {
	for {
		select {
		case <-b.waiting.wake:
		case <-ctx.Done():
			return
		}
		for ids := b.waiting.take(MaxBatch / 4); len(ids) > 0; ids = b.waiting.take(MaxBatch / 4) {
			if left := b.release(ctx, ids); len(left) > 0 {
				_ = sleep.For(ctx, releaseRetry) // the end of ctx is seen above
				b.waiting.again(left)
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// releaseRetry is how long to wait before jobs are looked at again after the store
// failed.
const releaseRetry = time.Second

// release looks at jobs that wait, and returns those that could not be looked at.
func (b *Board) release(ctx context.Context, ids []job.ID) (left []job.ID) {
	if b.spec.Observe {
		return nil
	}
	opened, err := b.readiness.wait(ctx, nil)
	if err != nil {
		return ids
	}
	entries, verdicts, left, err := b.judgeWaiting(ctx, opened, ids)
	if err != nil {
		b.log.Warn("jobs that wait for others could not be looked at", "jobs", len(ids), "error", err)
		return ids
	}
	a := &alteration{board: b, opened: opened, ids: entries, errs: make([]error, len(entries))}
	a.enough = func(_ int, s *currentJob) bool { return s != nil }
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		if s == nil || !isOpen(s.state) || !s.entry.Held {
			return driver.Op{}, errUnchanged // another host was first, or somebody canceled it
		}
		if s.status.Met && s.betweenArchiving() {
			return driver.Op{}, errUnchanged // it is held for its removal
		}
		return b.releaseOp(s, &verdicts[i]), nil
	}
	ctx, cancel := context.WithTimeout(ctx, untold)
	defer cancel()
	if err := a.run(ctx); err != nil {
		return append(left, entries...)
	}
	for i, err := range a.errs {
		switch {
		case err == nil, errors.Is(err, errUnchanged), errors.Is(err, job.NotFound):
			b.waiting.drop(entries[i])
		default:
			left = append(left, entries[i])
		}
	}
	return left
}

// prospect is what becomes of a job that waits.
type prospect struct {
	failed    string // why it never can begin; empty: it may begin
	notBefore time.Time
}

func (b *Board) releaseOp(s *currentJob, p *prospect) driver.Op {
	after := s.status
	if p.failed != "" {
		after.Lose(p.failed, attemptOf(&after, nil))
		return b.cancelOp(driver.Op{}, s, after, p.failed)
	}
	after.Met = true
	encoded := after.Encode()
	op := driver.Op{
		Kind: driver.Update, Version: s.entry.Version, Status: &encoded, Hold: &driver.Hold{},
		Event: job.OperationEvent, Reason: "every job that it waited for has ended",
	}
	if p.notBefore.After(time.Now()) {
		op.Hold.Until = p.notBefore
	}
	return op
}

// judgeWaiting returns those of the jobs that wait no longer, and what becomes of
// each; and those that have to be looked at again soon.
func (b *Board) judgeWaiting(ctx context.Context, opened *driver.BoardStatus, ids []job.ID) (done []job.ID, verdicts []prospect, again []job.ID, err error) {
	var needed, unknown []job.ID
	of := make(map[job.ID]int)
	waits := make(map[job.ID]rare, len(ids))
	for _, id := range ids {
		e, ok := b.index.Get(id)
		switch {
		case !ok:
			unknown = append(unknown, id)
			continue
		case !e.Held:
			b.waiting.drop(id)
			continue
		}
		w := rareOf(e.Extra)
		waits[id] = w
		for _, p := range w.after {
			if _, ok := of[p.ID]; !ok {
				of[p.ID] = len(needed)
				needed = append(needed, p.ID)
			}
		}
	}
	records, err := b.read(ctx, needed, 0)
	if err == nil {
		again, err = b.notYetKnown(ctx, unknown)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	shared, unsure, now := opened.Capabilities.Shared, make(map[job.ID]bool), time.Now()
	for i := range records {
		done := shared && endedAs(&records[i], true) == job.OpSuccess
		if done && opened.Capabilities.Alone && records[i].State == job.Complete {
			done = false // that was boardd, and is for good
		}
		if !b.waiting.isGone(needed[i], !done, now) && done {
			unsure[needed[i]] = true
		}
	}
	for id, w := range waits {
		p, waits := prospect{notBefore: w.notBefore}, false
		for i := range w.after {
			if unsure[w.after[i].ID] {
				again, waits = append(again, id), true
				continue
			}
			met, failed := meets(&records[of[w.after[i].ID]], &w.after[i], shared)
			if failed != "" {
				p.failed = failed
				break
			}
			waits = waits || !met
		}
		if p.failed != "" || !waits {
			done, verdicts = append(done, id), append(verdicts, p)
		}
	}
	return done, verdicts, again, nil
}

// notYetKnown returns those of jobs that the index does not know which are on the board: the
// index learns of a job just after it is noted here that the job waits. The others are gone,
// and forgotten.
func (b *Board) notYetKnown(ctx context.Context, ids []job.ID) (open []job.ID, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	records, err := b.read(ctx, ids, 0)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if isOpen(records[i].State) {
			open = append(open, id)
		} else {
			b.waiting.drop(id)
		}
	}
	return open, nil
}

// meets says whether a prerequisite is met, or why it never can be.
func meets(rec *driver.Record, p *job.Prerequisite, shared bool) (met bool, failed string) {
	ended := endedAs(rec, shared)
	switch {
	case ended == job.NoOperation && rec.State == job.Unknown:
		return false, "job " + p.ID.String() + ", which it waited for, is not known any more"
	case ended == job.NoOperation:
		return false, ""
	case len(p.Statuses) == 0 && ended == job.OpSuccess, slices.Contains(p.Statuses, ended):
		return true, ""
	}
	return false, fmt.Sprintf("job %s, which it waited for, ended with %s", p.ID, ended)
}

// endedAs returns the status that a job ended with; NoOperation if it has not ended
// or nothing is known of it. On a shared board, one that other programs use too, a
// job that is gone counts as done.
func endedAs(rec *driver.Record, shared bool) job.OperationStatus {
	switch rec.State {
	case job.Trashed:
		return job.OpError
	case job.Complete:
		switch rec.Outcome {
		case job.Canceled:
			return job.OpCanceled
		case job.Failed:
			return job.OpError
		}
		return job.OpSuccess
	case job.Unknown:
		if shared && rec.Outcome != job.Purged {
			return job.OpSuccess
		}
	case job.Unclaimed, job.Claimed:
	}
	return job.NoOperation
}

// waits reports whether a job was posted to wait for others.
func (b *Board) waits(e *index.Entry) bool {
	return len(e.Extra) > 0 && len(rareOf(e.Extra).after) > 0
}

// checkAfter reports what is wrong with what a posting waits for, and returns it
// in a canonical form.
func checkAfter(p *job.Posting) ([]job.Prerequisite, error) {
	if len(p.After) > job.MaxAfter {
		return nil, job.Errorf(job.Invalid, "after: %d are too many: want at most %d", len(p.After), job.MaxAfter)
	}
	var list []job.Prerequisite
	for i, a := range p.After {
		at := "after[" + strconv.Itoa(i) + "]"
		switch {
		case a.ID == (job.ID{}):
			return nil, job.Errorf(job.Invalid, "%s.uuid: want the uuid of a job", at)
		case a.ID == p.ID:
			return nil, job.Errorf(job.Invalid, "%s.uuid: a job cannot wait for itself", at)
		case slices.ContainsFunc(list, func(b job.Prerequisite) bool { return b.ID == a.ID }):
			return nil, job.Errorf(job.Invalid, "%s.uuid: job %s is there twice", at, a.ID)
		}
		for _, s := range a.Statuses {
			if !s.Finished() {
				return nil, job.Errorf(job.Invalid, "%s.statuses: want SUCCESS, ERROR or CANCELED, got %s", at, s)
			}
		}
		statuses := slices.Compact(slices.Sorted(slices.Values(a.Statuses)))
		if len(statuses) == 0 {
			statuses = []job.OperationStatus{job.OpSuccess}
		}
		list = append(list, job.Prerequisite{ID: a.ID, Statuses: statuses})
	}
	return list, nil
}
