package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// What a handler's error may wrap to say how the job goes on.
var (
	// ErrTrash sets the job aside for a person to look at.
	ErrTrash = errors.New("trash")
	// ErrRetry gives the job back, to be tried again after the back-off, and
	// refunds the attempt: the reason was not the job's.
	ErrRetry = errors.New("try again")
)

// RetryAfter is an error that gives the job back, to be tried again after the
// given time, of at least 0 and at most 36,525 days, and refunds the attempt.
type RetryAfter struct {
	Delay  time.Duration
	Reason string
}

// Error returns the reason.
func (r RetryAfter) Error() string {
	if r.Reason == "" {
		return fmt.Sprintf("try again in %v", r.Delay)
	}
	return r.Reason
}

// Is makes a RetryAfter an ErrRetry.
func (r RetryAfter) Is(target error) bool { return target == ErrRetry }

// maxDelay is the longest that a job may be delayed.
const maxDelay = job.MaxNotBeforeDays * 24 * time.Hour

// Ending says what became of a claim.
type Ending string

// The endings.
const (
	Consumed  Ending = "CONSUMED"
	Trashed   Ending = "TRASHED"
	Abandoned Ending = "ABANDONED"
	Canceled  Ending = "CANCELED" // the job was to be canceled, and the handler stopped
	Lost      Ending = "LOST"     // the claim ended before the worker could end it
)

// A Report says how one job ended.
type Report struct {
	Claim  *Claim
	Ending Ending
	Took   time.Duration // the handler and the report to the server
	Err    error         // what the handler returned, or why the claim was lost
}

// conclude ends a claim by what the handler returned.
func (r *run) conclude(ctx context.Context, e *entry, err error) Report {
	report, ending := r.ending(e, err)
	if ending == nil {
		r.letGo(ctx, e, err)
		return report
	}
	return settled(report, err, r.insist(ctx, e, func(ctx context.Context) error { return r.endDirectly(ctx, e.claim, ending) }))
}

// ending says how a claim ends by what the handler returned; it is nil for a claim that
// was lost.
func (r *run) ending(e *entry, err error) (Report, *WorkEnding) {
	report := Report{Claim: e.claim, Err: err}
	ending := &WorkEnding{Uuid: e.claim.GetUuid(), Token: e.claim.GetToken(), How: boarddv1.How_CONSUME}
	switch {
	case err == nil:
		// Worth a try even where the lease seemed lost: only the token decides.
		report.Ending = Consumed
	case r.held.fateOf(e) != inHand:
		report.Ending = Lost
		return report, nil
	case errors.Is(err, ErrCancelRequested), r.held.isCanceled(e):
		report.Ending, ending.How = Canceled, boarddv1.How_CANCEL
	case errors.Is(err, ErrTrash) && !r.held.isLate(e):
		report.Ending, ending.How, ending.Reason = Trashed, boarddv1.How_TRASH, reason(err)
	default:
		o := r.abandonment(e, err)
		report.Ending, ending.How, ending.Reason = Abandoned, boarddv1.How_ABANDON, o.Reason
		ending.RefundAttempt = o.RefundAttempt
		if o.RetryAfter != nil {
			ending.RetryAfter = durationpb.New(*o.RetryAfter)
		}
	}
	return report, ending
}

// settled is the report of a claim that was to be ended.
func settled(report Report, err, failed error) Report {
	if failed != nil {
		report.Ending, report.Err = Lost, errors.Join(err, failed)
	}
	return report
}

// endDirectly ends a claim by a call of its own.
func (r *run) endDirectly(ctx context.Context, c *Claim, ending *WorkEnding) error {
	switch ending.GetHow() {
	case boarddv1.How_CONSUME:
		return r.Board.Consume(ctx, c)
	case boarddv1.How_CANCEL:
		return r.Board.ConsumeAs(ctx, boarddv1.Outcome_CANCELED, c)
	case boarddv1.How_TRASH:
		return r.Board.Trash(ctx, ending.GetReason(), c)
	default:
		o := AbandonOptions{Reason: ending.GetReason(), RefundAttempt: ending.GetRefundAttempt()}
		if ending.RetryAfter != nil {
			after := ending.GetRetryAfter().AsDuration()
			o.RetryAfter = &after
		}
		return r.Board.Abandon(ctx, o, c)
	}
}

// letGo gives back a claim that this machine could not keep up, though the
// server may still count on it. It is a courtesy: the lease ends anyway.
func (r *run) letGo(ctx context.Context, e *entry, err error) {
	if r.held.fateOf(e) == gone {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := r.Board.Abandon(ctx, AbandonOptions{Reason: reason(err), RefundAttempt: true}, e.claim); err != nil {
		r.log.Debug("a lost claim was not given back", "job", e.claim.GetUuid(), "error", err)
	}
}

// abandonment says how a job goes back after err.
func (r *run) abandonment(e *entry, err error) AbandonOptions {
	o := AbandonOptions{Reason: reason(err)}
	var after RetryAfter
	switch {
	case r.held.isStopping(e):
		o.RefundAttempt, o.RetryAfter = true, new(time.Duration)
		return o
	case r.held.isLate(e):
		o.Reason = ErrTimeout.Error() // as the server calls it
	case errors.As(err, &after):
		delay := min(max(after.Delay, 0), maxDelay)
		o.RefundAttempt, o.RetryAfter = true, &delay
		return o
	case errors.Is(err, ErrRetry):
		o.RefundAttempt = true
	}
	if !r.backsOff {
		delay := doubled(int(max(e.claim.GetAttempt()-1, 0)), time.Second, 5*time.Minute)
		o.RetryAfter = &delay
	}
	return o
}

// insist repeats the end of a claim until the server has taken it or refused it
// for good: an end is repeated safely with the claim's token, and the lease is
// extended meanwhile.
func (r *run) insist(ctx context.Context, e *entry, end func(context.Context) error) error {
	patience := 30 * time.Second
	if left, ok := r.held.left(e); ok {
		patience = max(patience, left)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for failed := 0; ; failed++ {
		err := end(ctx)
		if err == nil || !job.KindOf(err).Retryable() {
			return err
		}
		if sleep.For(ctx, backoff(failed, 50*time.Millisecond, 2*time.Second)) != nil {
			return err
		}
	}
}

func reason(err error) string {
	text := err.Error()
	if len(text) > job.MaxReason {
		text = text[:job.MaxReason]
	}
	return strings.ToValidUTF8(text, "") // no other text can be sent
}
