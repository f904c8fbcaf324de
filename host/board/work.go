package board

import (
	"context"
	"errors"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// WorkRequest ends and extends claims, and asks for more.
type WorkRequest struct {
	// Claims says who works, and what is wanted at once: Max, and here 0 is none. IDs must
	// be empty.
	Claims ClaimRequest
	Ahead  int // wanted beyond Max, to begin later

	Endings []WorkEnding
	Extend  []WorkExtension
}

// WorkEnding ends one claim.
type WorkEnding struct {
	Ref Ref
	Ending
}

// WorkExtension extends one claim.
type WorkExtension struct {
	Ref   Ref
	Begun bool // of a claim that was given ahead: its handler has started
}

// Idleness says why a call of Work gave no claim.
type Idleness uint8

// The reasons.
const (
	NotIdle Idleness = iota
	IdleEmpty
	IdlePaused
	IdleLimit
)

// WorkResponse is what a call of Work did.
type WorkResponse struct {
	Ended      []error // in the order of the request
	Extended   []ExtendResult
	Claims     []job.Claim
	Steps      []Steps // of the claims' jobs, as in ClaimResponse
	Notices    []Notice
	Idle       Idleness
	RetryAfter time.Duration // when to ask again, with IdlePaused and IdleLimit
}

// idleFor is when a worker is told to ask again.
const idleFor = time.Second

// Work extends claims, ends claims and gives the worker others, in this order. A call
// that ends or extends claims answers when that is done, with what can be claimed at
// once. Another one waits, if it says so, until there is a claim, or news of a claim
// that the worker has in hand.
func (b *Board) Work(ctx context.Context, req WorkRequest) (WorkResponse, error) {
	c, err := b.workClaimer(ctx, &req)
	if err != nil {
		return WorkResponse{}, err
	}
	defer b.hands.enter(c.owner)()
	var response WorkResponse
	if len(req.Extend) > 0 {
		if response.Extended, err = b.extendWork(ctx, &req); err != nil {
			return WorkResponse{}, err
		}
	}
	if len(req.Endings) > 0 {
		refs := make([]Ref, len(req.Endings))
		for i := range refs {
			refs[i] = req.Endings[i].Ref
		}
		response.Ended, err = b.endClaims(ctx, refs, func(i int) *Ending { return &req.Endings[i].Ending })
		if err != nil {
			return WorkResponse{}, err
		}
	}
	if len(req.Extend)+len(req.Endings) > 0 {
		c.wait = 0
	}
	if err := c.work(ctx, req.Ahead, &response); err != nil {
		return WorkResponse{}, err
	}
	response.Notices = b.hands.take(c.owner)
	return response, nil
}

// workClaimer checks a request, so that nothing of a wrong one is done.
func (b *Board) workClaimer(ctx context.Context, req *WorkRequest) (*claimer, error) {
	switch {
	case len(req.Claims.IDs) > 0:
		return nil, job.Errorf(job.Invalid, "uuids: want none: Work gives the best jobs")
	case req.Ahead < 0 || req.Ahead > MaxBatch:
		return nil, job.Errorf(job.Invalid, "ahead: want 0 to %d, got %d", MaxBatch, req.Ahead)
	case len(req.Endings) > MaxBatch:
		return nil, job.Errorf(job.Invalid, "endings: %d are too many: want at most %d", len(req.Endings), MaxBatch)
	case len(req.Extend) > MaxBatch:
		return nil, job.Errorf(job.Invalid, "extend: %d are too many: want at most %d", len(req.Extend), MaxBatch)
	}
	for i := range req.Endings {
		if err := req.Endings[i].check(); err != nil {
			return nil, err
		}
	}
	c, err := b.claimer(ctx, &req.Claims)
	if err != nil {
		return nil, err
	}
	c.begins, c.most, c.news = req.Claims.Max, req.Claims.Max, true
	return c, nil
}

// extendWork extends claims, and before that notes which of them have begun.
func (b *Board) extendWork(ctx context.Context, req *WorkRequest) ([]ExtendResult, error) {
	refs, errs := make([]Ref, len(req.Extend)), make([]error, len(req.Extend))
	var begun []Ref
	var of []int
	for i := range refs {
		refs[i] = req.Extend[i].Ref
		if req.Extend[i].Begun {
			begun, of = append(begun, refs[i]), append(of, i)
		}
	}
	if len(begun) > 0 {
		all, err := b.begin(ctx, begun)
		if err != nil {
			return nil, err
		}
		for n, err := range all {
			errs[of[n]] = err
		}
	}
	results, err := b.extend(ctx, refs, req.Claims.Lease, req.Claims.Owner)
	if err != nil {
		return nil, err
	}
	for i := range results {
		if results[i].Err == nil && errs[i] != nil {
			results[i] = ExtendResult{Err: errs[i]} // it is extended, and has to be said again
		}
	}
	return results, nil
}

// begin notes that claims which were given ahead have begun.
func (b *Board) begin(ctx context.Context, refs []Ref) ([]error, error) {
	a, proofs, err := b.alterClaims(ctx, refs)
	if err != nil {
		return nil, err
	}
	a.enough = func(i int, s *currentJob) bool { return proofs[i].holds(s) }
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		if err := b.refusal(a.ids[i], &proofs[i], s); err != nil {
			return driver.Op{}, err
		}
		if !s.status.IsAhead() {
			return driver.Op{}, errUnchanged
		}
		after := s.status
		after.Begin()
		encoded := after.Encode()
		op := proofs[i].op(driver.Update)
		op.Version, op.Status, op.Event, op.Reason = s.entry.Version, &encoded, job.OperationEvent, "the handler has started"
		return op, nil
	}
	if err := a.run(ctx); err != nil {
		return nil, err
	}
	for i, err := range a.errs {
		if errors.Is(err, errUnchanged) {
			a.errs[i] = nil
		}
		if a.errs[i] == nil {
			b.hands.begun(a.ids[i], proofs[i].token)
		}
	}
	return a.errs, nil
}

// work claims jobs for a worker, or waits for one or for news.
func (c *claimer) work(ctx context.Context, ahead int, response *WorkResponse) error {
	if c.begins == 0 && ahead == 0 && c.wait <= 0 {
		return nil
	}
	if c.remember {
		key := []job.ID{job.ID(c.request)}
		s, err := c.board.requests.lock(ctx, key)
		if err != nil {
			return err
		}
		defer c.board.requests.unlock(key, s)
	}
	defer c.release()
	wanted := c.begins + ahead
	c.most = min(c.begins+c.aheadNow(ahead), MaxBatch)
	var got ClaimResponse
	var err error
	if c.most > 0 || c.remember && wanted > 0 { // perhaps for the answer to an earlier try
		got, err = c.best(ctx)
	} else if c.wait > 0 {
		got, err = c.stand(ctx)
	}
	if err != nil && errors.Is(err, errStore) && job.KindOf(err) == job.QuotaExceeded {
		response.Idle, response.RetryAfter = IdleLimit, idleFor
		return c.pauseForNews(ctx)
	}
	if err != nil {
		return err
	}
	got = c.withResults(ctx, got)
	response.Claims, response.Steps = got.Claims, got.Steps
	for i := range got.Claims {
		claim := &got.Claims[i]
		c.board.hands.hold(c.owner, claim.ID, claim.Token, c.stands[i], claim.Ahead)
	}
	if len(got.Claims) == 0 && wanted > 0 {
		c.idleReason(ctx, response)
	}
	return nil
}

// pauseForNews waits a little in a call that may wait, so that a worker which asks again
// at once does not ask all the time.
func (c *claimer) pauseForNews(ctx context.Context) error {
	if c.wait <= 0 {
		return nil
	}
	c.begins, c.most, c.wait = 0, 0, min(c.wait, idleFor)
	_, err := c.stand(ctx)
	return err
}

// aheadNow is how many jobs to give beyond those that begin at once: a fair share of those
// that nobody waits for, and none where what others may have depends on it.
func (c *claimer) aheadNow(wanted int) int {
	if wanted == 0 || c.noExpiry || c.rules.grouping != nil {
		return 0
	}
	spare := c.board.index.Spare()
	if spare <= c.begins {
		return 0
	}
	return min(wanted, max(0, spare/max(1, c.board.hands.busy())-c.begins))
}

// recall has other workers give back what they hold ahead, for a call that has to wait.
func (c *claimer) recall(ctx context.Context) {
	const atOnce = 64
	c.board.hands.recall(min(c.begins, atOnce), func(ids []job.ID) []bool {
		fit := make([]bool, len(ids))
		for i, id := range ids {
			if e, open := c.board.index.Get(id); open {
				e.Claim = nil // as it will be
				allowed := make([]bool, 1)
				fit[i] = c.judge(ctx, []*index.Entry{e}, allowed) == nil && allowed[0]
			}
		}
		return fit
	})
}

// idleReason says why there is no claim.
func (c *claimer) idleReason(ctx context.Context, response *WorkResponse) {
	response.Idle = IdleEmpty
	if paused, _ := c.board.pause.state(); paused {
		response.Idle, response.RetryAfter = IdlePaused, idleFor
		return
	}
	if class, err := c.classOf(ctx); err == nil && c.board.index.Full(class) {
		response.Idle, response.RetryAfter = IdleLimit, idleFor
	}
}
