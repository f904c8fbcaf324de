package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// returned takes in what a trip brought back.
func (t *trips) returned(trip *trip) {
	t.trip, t.reserved = nil, t.reserved-trip.asked
	t.flow.went(time.Since(trip.sent))
	end, ext := 0, 0
	for _, d := range trip.items {
		switch {
		case trip.err != nil:
			d.done <- delivered{err: trip.err}
		case d.ending != nil:
			d.done <- delivered{err: trip.worked.EndErrors[end]}
			end++
		default:
			n := len(d.extend)
			part := Worked{
				WorkResponse: &boarddv1.WorkResponse{Extended: trip.worked.Extended[ext : ext+n]},
				ExtendErrors: trip.worked.ExtendErrors[ext : ext+n],
			}
			ext += n
			d.done <- delivered{worked: part}
		}
	}
	if trip.err != nil {
		t.missed = true
		if forGood(trip.err) {
			t.refused(trip.err)
		}
		return
	}
	t.makeUp(trip.worked.tries)
	t.notices(trip.worked.GetNotices())
	t.take(trip.worked.GetClaims(), trip.sent)
}

// answered takes in what came of a wait.
func (t *trips) answered(w *wait) {
	w.cancel()
	t.wait, t.reserved = nil, t.reserved-w.asked
	t.hushed = false
	t.quiet.Reset(hush)
	switch {
	case w.err == nil:
	case t.closing, errors.Is(w.err, context.Canceled): // it was called off
		t.missed = true
		return
	case !job.KindOf(w.err).Retryable():
		t.refused(w.err)
		return
	default:
		delay := backoff(t.failed, 500*time.Millisecond, 30*time.Second)
		t.outage().refusal(t.failed, w.err)
		t.failed++
		t.missed = true
		t.retry = time.Now().Add(delay)
		t.again.Reset(delay)
		return
	}
	t.failed = 0
	t.makeUp(w.worked.tries)
	t.notices(w.worked.GetNotices())
	claims := w.worked.GetClaims()
	t.take(claims, w.sent)
	if !t.UntilEmpty || w.asked == 0 || len(claims) > 0 {
		return
	}
	if t.dry = t.left == w.left; !w.busy {
		t.finish(nil)
	}
}

// makeUp makes up for notices that were lost with the answers to earlier calls, or to earlier
// tries of this one: every claim is asked about, and what has not begun is given back, as
// another worker may wait for it.
func (t *trips) makeUp(tries int) {
	if !t.missed && tries == 1 {
		return
	}
	t.missed = false
	t.held.checkAll()
	t.giveBackAhead("another worker may wait")
}

// refused ends the worker: the server says for good that it may not work.
func (t *trips) refused(err error) {
	t.off = true
	if job.KindOf(err) == job.Unauthenticated {
		t.held.refuse(err)
	}
	t.giveBackAhead(ErrStopping.Error())
	t.finish(err)
}

// take begins with claims, or keeps them for later.
func (t *trips) take(claims []*Claim, sent time.Time) {
	for _, c := range claims {
		ctx, entry := t.held.add(t.background, c, sent)
		if t.closing {
			t.giveBackUnbegun(entry, ErrStopping.Error())
			continue
		}
		if lease := c.GetLease().AsDuration(); lease > 0 {
			t.lease = lease
		}
		t.started++
		a := &aheadClaim{ctx, entry}
		switch {
		case t.free > 0:
			t.begin(a)
		default:
			t.ahead = append(t.ahead, a)
		}
	}
}

// begin runs the handler on a claim.
func (t *trips) begin(a *aheadClaim) {
	t.free--
	ctx, e := a.ctx, a.entry
	t.held.begin(e)
	t.handlers.Go(func() {
		began := time.Now()
		err := t.handle(ctx, e.claim)
		t.held.finished(e)
		took := time.Since(began)
		report, ending := t.ending(e, err)
		if ending == nil {
			t.put(func(b *box) { b.freed++; b.took = append(b.took, took) })
			t.letGo(t.background, e, err)
		} else {
			ending.Begun = true
			freed := false
			failed := t.insist(t.background, e, func(ctx context.Context) error {
				done := t.deliver(&delivery{ending: ending}, !freed, took)
				freed = true
				err := t.await(ctx, done)
				switch job.KindOf(err) {
				case job.Unsupported: // the server was put back to an older version
				case job.Invalid: // perhaps of another ending of the trip
				default:
					return err
				}
				return t.endDirectly(ctx, e.claim, ending)
			})
			report = settled(report, err, failed)
		}
		t.held.remove(e)
		t.put(func(b *box) { b.left++ })
		report.Took = time.Since(began)
		t.report(report, t.held.isStopping(e))
	})
}

// deliver has a trip bring something; with free the handler that it is of is free again.
func (t *trips) deliver(d *delivery, free bool, took time.Duration) <-chan delivered {
	d.done = make(chan delivered, 1)
	t.put(func(b *box) {
		b.items = append(b.items, d)
		if free {
			b.freed++
			b.took = append(b.took, took)
		}
	})
	return d.done
}

func (t *trips) await(ctx context.Context, done <-chan delivered) error {
	select {
	case d := <-done:
		return d.err
	case <-ctx.Done():
		return gaveUp("work", ctx.Err())
	}
}

// giveBackAhead ends the claims that were given ahead and have not begun.
func (t *trips) giveBackAhead(why string) {
	for _, a := range t.ahead {
		t.giveBackUnbegun(a.entry, why)
	}
	t.ahead = nil
}

// giveBackUnbegun ends a claim whose handler has not started.
func (t *trips) giveBackUnbegun(e *entry, why string) {
	t.handlers.Go(func() {
		t.held.finished(e)
		ending := &WorkEnding{
			Uuid: e.claim.GetUuid(), Token: e.claim.GetToken(), How: boarddv1.How_ABANDON, Reason: why,
			RetryAfter: durationpb.New(0), RefundAttempt: true,
		}
		ctx, cancel := context.WithTimeout(t.background, 5*time.Second)
		defer cancel()
		if err := t.await(ctx, t.deliver(&delivery{ending: ending}, false, 0)); err != nil {
			t.log.Debug("a claim that was not begun was not given back", "job", e.claim.GetUuid(), "error", err)
		}
		t.held.remove(e)
		t.put(func(b *box) { b.left++ })
	})
}

// notices acts on what the server said of claims in hand.
func (t *trips) notices(list []*WorkNotice) {
	for _, n := range list {
		switch n.GetWhat() {
		case boarddv1.What_RECALL:
			for i, a := range t.ahead {
				if a.entry.claim.GetToken() == n.GetToken() {
					t.ahead = append(t.ahead[:i:i], t.ahead[i+1:]...)
					t.giveBackUnbegun(a.entry, "another worker waits")
					break
				}
			}
		default:
			t.held.notice(n)
		}
	}
}

// extend extends claims with the next trip. Where that does not leave soon, as the one
// under way hangs, they are extended by a call of their own.
func (t *trips) extend(ctx context.Context, lease time.Duration, entries []*entry) ([]*Extension, error) {
	claims, extensions := make([]*Claim, len(entries)), make([]*WorkExtension, len(entries))
	for i, e := range entries {
		claims[i] = e.claim
		extensions[i] = &WorkExtension{Uuid: e.claim.GetUuid(), Token: e.claim.GetToken(), Begun: t.held.untold(e)}
	}
	if t.old.Load() {
		return t.Board.Extend(ctx, lease, claims...)
	}
	patience := time.Second
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/2)
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	done := t.deliver(&delivery{extend: extensions}, false, 0)
	select {
	case d := <-done:
		if job.KindOf(d.err) == job.Unsupported {
			return t.Board.Extend(ctx, lease, claims...)
		}
		return t.extensions(entries, d)
	case <-soon.Done():
		return t.extendBeside(ctx, lease, claims, entries, done)
	}
}

// extendBeside extends claims by a call of their own while a trip that brings the same is
// under way, and takes what comes back first: where calls take long, and do come back, the
// trip has the advantage.
func (t *trips) extendBeside(ctx context.Context, lease time.Duration, claims []*Claim, entries []*entry, done <-chan delivered) (results []*Extension, err error) {
	var calls sync.WaitGroup
	defer calls.Wait()
	beside, cancel := context.WithCancel(ctx)
	defer cancel()
	back := make(chan struct{})
	calls.Go(func() {
		defer close(back)
		results, err = t.Board.Extend(beside, lease, claims...)
	})
	select {
	case d := <-done:
		if d.err == nil {
			cancel()
			<-back
			return t.extensions(entries, d)
		}
		<-back
	case <-back:
	}
	return results, err
}

// extensions is what a trip gave for claims that it extended.
func (t *trips) extensions(entries []*entry, d delivered) ([]*Extension, error) {
	if d.err != nil {
		return nil, d.err
	}
	results := make([]*Extension, len(entries))
	for i, x := range d.worked.GetExtended() {
		if d.worked.ExtendErrors[i] == nil {
			results[i] = &Extension{Lease: x.GetLease(), LeaseExpiresAt: x.GetLeaseExpiresAt(), CancelRequested: x.GetCancelRequested()}
			t.held.toldBegun(entries[i])
		}
	}
	for _, err := range d.worked.ExtendErrors {
		if err != nil {
			return results, Failures(d.worked.ExtendErrors)
		}
	}
	return results, nil
}
