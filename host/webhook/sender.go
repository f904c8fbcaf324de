package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
)

// How a sender works on the deliveries of a hook.
const (
	claimWait   = 30 * time.Second // for a delivery, at a time
	leaseBeyond = 5 * time.Second  // what a lease has beyond what the request's timeout needs
	endWithin   = 10 * time.Second // to say what became of a delivery
	turnPause   = time.Second      // before it is asked again whether the delivery before has ended
	turnMost    = time.Minute
	mostBody    = 64 << 10 // bytes of an answer that are read, and forgotten
)

// sender claims the deliveries of a hook and sends them.
type sender struct {
	hook  *Hook
	board *board.Board // on which they are jobs
	owner string
	log   *slog.Logger
	tally *Tally

	client *http.Client
	last   lastKeeper
}

// run sends deliveries until ctx ends. Those under way are given back then.
func (s *sender) run(ctx context.Context) {
	s.client = newClient(s.hook)
	defer s.client.CloseIdleConnections()
	var group sync.WaitGroup
	defer group.Wait()
	room := make(chan struct{}, AtOnce)
	var trouble complaint
	for ctx.Err() == nil {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
			return
		}
		response, err := s.board.Claim(ctx, s.request(AtOnce-len(room)+1))
		if err != nil {
			<-room
			trouble.wait(ctx, s.log, "deliveries are claimed", err)
			continue
		}
		trouble = complaint{}
		for i := range response.Claims {
			if i > 0 {
				room <- struct{}{} // nobody else takes any
			}
			group.Go(func() {
				s.send(ctx, &response.Claims[i])
				<-room
			})
		}
		if len(response.Claims) == 0 {
			<-room
		}
	}
}

func (s *sender) request(most int) board.ClaimRequest {
	return board.ClaimRequest{
		Owner: s.owner, Names: []string{s.hook.Key()}, Max: most, Wait: claimWait,
		Lease: min(s.hook.timeout()*4/3+leaseBeyond, s.board.Spec().MaxLease),
	}
}

// within returns how long the request of a delivery may take: no more than three quarters of
// the lease, else another server may begin it meanwhile.
func (s *sender) within(lease time.Duration) time.Duration {
	if lease > 0 {
		return min(s.hook.timeout(), lease*3/4)
	}
	return s.hook.timeout()
}

// send sends one delivery, and says what became of it.
func (s *sender) send(ctx context.Context, c *job.Claim) {
	began := time.Now().UTC()
	v := s.try(ctx, c)
	outcome := s.count(c, v.what)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	refs := []board.Ref{{ID: c.ID, Owner: s.owner, Token: s.board.FormatToken(c.ID, c.Token)}}
	var errs []error
	var err error
	s.keep(ctx, c, &v, outcome, began)
	switch v.what {
	case sent:
		errs, err = s.board.Consume(ctx, refs)
	case refused:
		errs, err = s.board.Trash(ctx, refs, nil, v.reason)
	case failed:
		errs, err = s.board.Abandon(ctx, refs, board.AbandonOptions{Reason: v.reason, RetryAfter: s.retryAfter(c.Attempt, v.after)})
	case early:
		errs, err = s.board.Abandon(ctx, refs, board.AbandonOptions{Reason: v.reason, RetryAfter: &v.after, RefundAttempt: true})
	}
	if err == nil && len(errs) == 1 {
		err = errs[0]
	}
	if err != nil {
		s.log.WarnContext(ctx, "what became of a delivery could not be written: it may be sent again", "delivery", c.ID, "error", err)
	}
}

// keep writes what came of a try, where it is shown: before the delivery ends as a job, so that
// whoever waits for that finds it.
func (s *sender) keep(ctx context.Context, c *job.Claim, v *verdict, outcome string, began time.Time) {
	if outcome == "" {
		return
	}
	now := time.Now().UTC()
	err := s.last.keep(ctx, s.board, s.hook, Last{At: now, Outcome: outcome, Reason: v.reason, Status: v.status})
	if isTrial(c.Job) {
		t := LastTrial{
			ID: c.ID.String(), At: now, Took: now.Sub(began), Outcome: outcome, Reason: v.reason, Status: v.status,
			Answer: shown(v.answer), Within: len(s.hook.Networks) > 0,
		}
		err = errors.Join(err, t.write(ctx, s.board, s.hook))
	}
	if err != nil {
		s.log.DebugContext(ctx, "what came of the last try could not be written: it is only shown", "error", err)
	}
}

// count notes what came of a try, and returns it; "": nothing was tried.
func (s *sender) count(c *job.Claim, what int) (outcome string) {
	switch most := cmp.Or(c.Job.MaxAttempts, s.board.Spec().Retry.MaxAttempts); {
	case what == early:
		return ""
	case what == sent:
		outcome = Delivered
	case what == refused, most > 0 && c.Attempt >= most:
		outcome = GivenUp
	default:
		outcome = Failed
	}
	s.tally.tried(outcome)
	return outcome
}

// What may become of a delivery.
const (
	sent    = iota // its receiver has it
	failed         // it is to be tried again
	early          // nothing was tried
	refused        // it is never to be tried again by itself
)

// verdict is what became of a delivery.
type verdict struct {
	what   int
	reason string
	after  time.Duration // at least, before the next try
	status int           // of the receiver's answer; 0: there was none
	answer []byte        // its first bytes
}

// try sends a delivery if it is its turn.
func (s *sender) try(ctx context.Context, c *job.Claim) verdict {
	var d delivery
	if err := json.Unmarshal(c.Job.Details, &d); err != nil || len(d.Body) == 0 {
		return verdict{what: refused, reason: "the job is no delivery of a webhook"}
	}
	if d.After != "" {
		if v, ok := s.turn(ctx, d.After); !ok {
			return v
		}
	}
	asking, cancel := context.WithTimeout(ctx, s.within(c.Lease))
	defer cancel()
	v := s.ask(asking, c.ID.String(), d.Body)
	if v.what != sent && ctx.Err() != nil {
		return verdict{what: early, reason: "the server was stopped"}
	}
	return v
}

// turn reports whether the delivery that goes before has ended.
func (s *sender) turn(ctx context.Context, before string) (verdict, bool) {
	id, err := job.ParseID(before)
	if err != nil {
		return verdict{}, true
	}
	results, err := s.board.Get(ctx, []job.ID{id}, board.GetOptions{})
	switch {
	case err != nil:
		return verdict{what: early, reason: "it is not known whether the delivery before has ended", after: turnPause}, false
	case !isOpen(results[0].Job):
		return verdict{}, true
	}
	wait := turnWait(time.Until(results[0].Job.NotBefore))
	return verdict{what: early, reason: "delivery " + before + " about the same job goes before", after: wait}, false
}

// turnWait is how long a delivery waits whose forerunner is tried again after a while: as long, but
// never much longer than turnMost or a quarter of it, since somebody may have that one tried at once.
func turnWait(until time.Duration) time.Duration {
	return turnPause + max(0, min(until, max(turnMost, until/4)))
}

// ask makes the request.
func (s *sender) ask(ctx context.Context, id string, body []byte) verdict {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.hook.URL, bytes.NewReader(body))
	if err != nil {
		return verdict{what: failed, reason: "the address of the webhook cannot be asked"}
	}
	now := time.Now()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "boardd")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
	req.Header.Set("Webhook-Signature", s.hook.Secrets.sign(id, now, body))
	answer, err := s.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address, which may hold what its receiver alone is to know
		}
		return verdict{what: failed, reason: shorten.To(err.Error(), job.MaxReason)}
	}
	defer func() { _ = answer.Body.Close() }()
	first, _ := io.ReadAll(io.LimitReader(answer.Body, MaxAnswer))    // what cannot be read is left out
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, mostBody)) // so that the connection can be used again
	v := verdict{status: answer.StatusCode, answer: first}
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		v.what = sent
	case code == http.StatusGone:
		v.what, v.reason = refused, "the receiver answered 410 Gone: it wants no more of this"
	default:
		v.what, v.reason, v.after = failed, "the receiver answered "+answer.Status, retryAfter(answer.Header.Get("Retry-After"), now)
	}
	return v
}

// retryAfter reads the header of that name.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(n)*time.Second, MaxRetry)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), MaxRetry)
	}
	return 0
}

// retryAfter returns when a delivery is tried again after so many tries: nil where the board
// says so, and the receiver does not ask for later.
func (s *sender) retryAfter(tries int32, least time.Duration) *time.Duration {
	if s.board.Spec().Retry.Backoff > 0 && least == 0 {
		return nil
	}
	wait := FirstRetry
	for n := int32(1); n < tries && wait < MaxRetry; n++ {
		wait *= 2
	}
	wait = max(min(wait, MaxRetry), least)
	wait += rand.N(wait/10 + 1) //nolint:gosec // so that not all come back at once
	return &wait
}
