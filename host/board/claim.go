package board

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Claim gives the caller jobs: those that it names, or the best that the board
// lets it have. With a wait it stays in line until there is one; when the wait
// is over the answer is empty. A caller that has gone is given nothing.
func (b *Board) Claim(ctx context.Context, req ClaimRequest) (ClaimResponse, error) {
	c, err := b.claimer(ctx, &req)
	if err != nil {
		return ClaimResponse{}, err
	}
	if c.remember {
		// Two calls with one request id are one call that came twice: the second
		// waits for what the first is given.
		key := []job.ID{job.ID(c.request)}
		s, err := b.requests.lock(ctx, key)
		if err != nil {
			return ClaimResponse{}, err
		}
		defer b.requests.unlock(key, s)
	}
	if len(req.IDs) > 0 {
		return c.chosen(ctx, req.IDs)
	}
	return c.best(ctx)
}

// claimer is one call of Claim.
type claimer struct {
	*wish
	opened   *driver.BoardStatus
	owner    string
	most     int
	lease    time.Duration
	noExpiry bool
	wait     time.Duration

	remember bool
	request  [16]byte
	asked    bool // an op with this request was sent

	claims []job.Claim
	ended  bool // the store gave an earlier answer to this request: nothing is added
}

func (b *Board) claimer(ctx context.Context, req *ClaimRequest) (*claimer, error) {
	w, err := b.wishOf(req.Names, req.Filter, req.WorkerLabels)
	if err != nil {
		return nil, err
	}
	if req.Owner == "" {
		return nil, job.Errorf(job.Invalid, "owner: want a name of 1 to %d bytes", job.MaxOwner)
	}
	if err := checkText("owner", req.Owner, job.MaxOwner); err != nil {
		return nil, err
	}
	c := &claimer{wish: w, owner: req.Owner, most: max(req.Max, 1), noExpiry: req.NoExpiry, wait: req.Wait}
	switch {
	case req.Max < 0 || req.Max > MaxBatch:
		return nil, job.Errorf(job.Invalid, "max: want 1 to %d, got %d", MaxBatch, req.Max)
	case len(req.IDs) > MaxBatch:
		return nil, job.Errorf(job.Invalid, "uuids: %d are too many: want at most %d", len(req.IDs), MaxBatch)
	case len(req.RequestID) > MaxRequestID:
		return nil, job.Errorf(job.Invalid, "requestId: want at most %d bytes", MaxRequestID)
	case req.NoExpiry && !b.spec.AllowNoExpiry:
		return nil, job.Errorf(job.Invalid, "noExpiry: this board grants no claims without a lease")
	case req.NoExpiry && req.Lease != 0:
		return nil, job.Errorf(job.Invalid, "lease: want either a lease or noExpiry, not both")
	}
	if !req.NoExpiry {
		if c.lease, err = b.leaseOf(req.Lease); err != nil {
			return nil, err
		}
	}
	if req.RequestID != "" {
		c.remember, c.request = true, b.requestOf(req.Owner, req.RequestID)
	}
	c.opened, err = b.changing(ctx)
	return c, err
}

// requestOf makes the store's name for a caller's request id.
func (b *Board) requestOf(owner, id string) [16]byte {
	text := append([]byte(nil), b.seed[:]...)
	text = binary.AppendUvarint(text, uint64(len(owner)))
	text = append(append(text, owner...), id...)
	sum := sha256.Sum256(text)
	return [16]byte(sum[:16])
}

// best claims the best jobs, and waits for one if there is none.
func (c *claimer) best(ctx context.Context) (ClaimResponse, error) {
	if paused, _ := c.pause.state(); !paused {
		class, err := c.index.Class(ctx, c.class(), c.judge)
		if err == nil {
			err = c.grab(ctx, class)
		}
		if err := c.over(ctx, err); err != nil || len(c.claims) > 0 {
			return c.response(), err
		}
	}
	if c.remember && !c.asked {
		err := c.send(ctx, nil, 0) // only for the answer that an earlier try was given
		if err := c.over(ctx, err); err != nil || len(c.claims) > 0 {
			return c.response(), err
		}
	}
	if c.wait <= 0 {
		return c.response(), nil
	}
	return c.stand(ctx)
}

// over decides what becomes of an error: nothing, where there is something to
// answer with or the policies failed, which denies. It gives everything back if
// the caller has gone.
func (c *claimer) over(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		c.giveBack(ctx)
		return &job.Error{Op: "claim", Kind: job.Interrupted, Err: cause}
	}
	if errors.Is(err, errStore) {
		return err
	}
	return nil
}

// errStore marks errors of the store as against those of a judge.
var errStore = errors.New("the store did not grant the claim")

func (c *claimer) response() ClaimResponse { return ClaimResponse{Claims: c.claims} }

// grab claims from what the index offers until it has enough or nothing is left.
func (c *claimer) grab(ctx context.Context, class *index.Class) error {
	spare := 0
	for round := 0; len(c.claims) < c.most && !c.ended && round < maxRounds; round++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		need := c.most - len(c.claims)
		want := need + spare
		if most := c.opened.Capabilities.MaxCandidates; most > 0 {
			want = min(want, most)
		}
		entries := c.index.Take(class, want)
		if len(entries) == 0 {
			return nil
		}
		if err := c.send(ctx, entries, min(need, len(entries))); err != nil {
			return err
		}
		spare = min(need, maxSpare) // others are at this head of the line, too
	}
	return nil
}

// Bounds of one claim call: how often it goes to the store, and how many
// candidates more than needed it offers once some were gone.
const (
	maxRounds = 1 << 10
	maxSpare  = 8
)

// send has the store claim up to count of the entries, which the index has
// reserved for this call.
func (c *claimer) send(ctx context.Context, entries []*index.Entry, count int) error {
	ids := make([]job.ID, len(entries))
	byID := make(map[job.ID]*index.Entry, len(entries))
	for i, e := range entries {
		ids[i], byID[e.ID] = e.ID, e
	}
	taken, busy, s := c.hold(ctx, ids)
	chosen := make([]*index.Entry, len(taken))
	for i, id := range taken {
		chosen[i] = byID[id]
	}
	var r driver.Result
	var back []job.ID
	func() {
		defer c.flight.unlock(taken, s)
		if len(taken) == 0 && !c.remember {
			return
		}
		op := c.op(chosen, count)
		r = c.ask(ctx, &op)
		back = c.learn(ctx, byID, taken, &r)
	}()
	c.index.Return(append(back, busy...)...) // when they are free: it may wake somebody
	switch r.Kind {
	case job.NoKind:
		return nil
	case job.Unavailable, job.OutcomeUnknown, job.Interrupted:
		if len(c.claims) > 0 {
			return nil // better those than none; the next call meets the rest
		}
	default:
	}
	return &job.Error{Op: "claim", Kind: callKind(r.Kind), Message: r.Message, Owner: r.Owner, Err: errStore}
}

// hold takes those of the jobs that have no operation under way. If all have, it
// waits a moment: mostly they are about to be done.
func (c *claimer) hold(ctx context.Context, ids []job.ID) (taken, busy []job.ID, s stay) {
	taken, busy, s = c.flight.try(ids)
	if len(taken) > 0 || len(busy) == 0 {
		return taken, busy, s
	}
	c.flight.done(s)
	ctx, cancel := context.WithTimeout(ctx, busyTime)
	defer cancel()
	if s, err := c.flight.lock(ctx, busy); err == nil {
		return busy, nil, s
	}
	return c.flight.try(ids)
}

// busyTime is how long a claim waits for jobs with an operation under way.
const busyTime = 50 * time.Millisecond

// callKind makes a kind of an item one of a whole call: a claim has no items.
func callKind(k job.Kind) job.Kind {
	if k == job.OutcomeUnknown {
		return job.Unavailable
	}
	return k
}

// op makes the store's op of the entries.
func (c *claimer) op(entries []*index.Entry, count int) driver.Op {
	op := driver.Op{Kind: driver.Claim, Request: c.request, Event: job.ClaimedEvent}
	if !c.remember {
		op.Request = c.random.next()
	}
	candidates := make([]driver.Candidate, len(entries))
	records := make([][]byte, len(entries))
	now := time.Now()
	for i, e := range entries {
		s := c.standingOf(e)
		records[i] = s.claimed(now)
		c.setStatus(e, records[i], ownPriority(e)) // for when the claim is granted
		candidates[i] = driver.Candidate{Job: e.ID, Version: e.Version, Nonce: c.random.next(), Status: &records[i]}
	}
	op.Claim = &driver.ClaimSpec{
		Candidates: candidates, Count: max(count, 1), Owner: c.owner, Lease: c.lease, NoExpiry: c.noExpiry,
		Parts: driver.Details, Remember: c.remember, More: c.asked,
	}
	c.asked = true
	return op
}

// claimed is the status record of a job that is claimed once more.
func (s *standing) claimed(now time.Time) []byte {
	after := s.status
	after.attempt++
	after.exhausted, after.cancel = false, false
	if after.startedAt.IsZero() {
		after.startedAt = now.UTC()
	}
	return after.encode()
}

// ask sends the op. It goes on for a while after the caller has gone, since what
// was granted must be known to be given back.
func (c *claimer) ask(ctx context.Context, op *driver.Op) driver.Result {
	limit := time.Now().Add(untold)
	if deadline, ok := ctx.Deadline(); ok {
		limit = deadline.Add(afterwards)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
	defer cancel()
	return c.Board.send(ctx, c.opened, []driver.Op{*op})[0]
}

// afterwards is how long boardd works on what a caller that has gone left.
const afterwards = 5 * time.Second

// learn tells the index what came of a claim, and keeps the claims. It returns
// the jobs whose reservations are to be given back.
func (c *claimer) learn(ctx context.Context, byID map[job.ID]*index.Entry, taken []job.ID, r *driver.Result) []job.ID {
	left := make(map[job.ID]struct{}, len(taken))
	for _, id := range taken {
		left[id] = struct{}{}
	}
	var news []*index.Entry
	for i := range r.Claims {
		claimed := &r.Claims[i]
		e := c.entryClaimed(byID[claimed.Job], claimed, r.Repeated)
		if e == nil {
			continue
		}
		delete(left, claimed.Job)
		news = append(news, e)
		c.keep(e, claimed)
	}
	var unclear, back []job.ID
	for i := range r.Gone {
		gone := &r.Gone[i]
		if _, ok := left[gone.Job]; !ok {
			continue
		}
		delete(left, gone.Job)
		c.metrics.Passed.Add(1)
		switch {
		case gone.Record != nil:
			c.absorb(gone.Record)
			back = append(back, gone.Job) // if that was no news, the reservation would stay
		case gone.Kind == job.Corrupt:
			c.log.Warn("a job's record in the store cannot be read; it is offered to nobody", "job", gone.Job.String(), "problem", gone.Message)
		case gone.Kind == job.QuotaExceeded:
			back = append(back, gone.Job)
		default:
			unclear = append(unclear, gone.Job)
		}
	}
	c.index.PutAll(news)
	c.reread(context.WithoutCancel(ctx), unclear...)
	for _, id := range taken {
		if _, ok := left[id]; ok {
			back = append(back, id)
		}
	}
	if r.Repeated && len(r.Claims) > 0 {
		c.ended = true
	}
	if r.Kind == job.NoKind && !r.Repeated {
		c.metrics.Claimed.Add(int64(len(r.Claims)))
	}
	return append(back, unclear...)
}

// entryClaimed returns a job's entry as it is after the claim, nil if nothing is
// known of it.
func (c *claimer) entryClaimed(e *index.Entry, claimed *driver.Claimed, repeated bool) *index.Entry {
	now := time.Now()
	if e == nil || repeated {
		if claimed.Record == nil {
			if e, _ = c.index.Get(claimed.Job); e == nil {
				return &index.Entry{ID: claimed.Job} // an answer to an old request, whose job is gone
			}
			return e
		}
		return c.entryOf(claimed.Record, now)
	}
	e.Position, e.Version, e.Held = claimed.Position, claimed.Version, false
	if !claimed.At.IsZero() {
		e.ModifiedAt = claimed.At
	}
	e.Claim = &index.Claim{Owner: c.owner, Token: claimed.Token, NoExpiry: c.noExpiry, Since: claimed.At}
	if !c.noExpiry {
		e.Claim.Ends = now.Add(claimed.Lease)
	}
	return e
}

func (c *claimer) keep(e *index.Entry, claimed *driver.Claimed) {
	j := jobOf(e)
	if claimed.Record != nil {
		showDetails(j, &claimed.Record.Posting)
	}
	claim := job.Claim{
		ID: claimed.Job, Owner: c.owner, Token: claimed.Token, Lease: claimed.Lease, Attempt: j.Attempt, Job: j,
	}
	if claimed.Lease > 0 {
		claim.LeaseExpiresAt = expiresAt(claimed.At, claimed.Lease)
	}
	c.claims = append(c.claims, claim)
}

// giveBack ends the claims that were made for a caller that is not there any
// more, as if they had not been. One that named its request may come again and
// is then given the same.
func (c *claimer) giveBack(ctx context.Context) {
	if len(c.claims) == 0 || c.remember {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	claims := c.claims
	c.claims = nil
	a := &alteration{Board: c.Board, opened: c.opened, ids: make([]job.ID, len(claims)), errs: make([]error, len(claims))}
	for i := range claims {
		a.ids[i] = claims[i].ID
	}
	a.enough = func(_ int, s *standing) bool { return s != nil }
	a.plan = func(i int, s *standing) (driver.Op, error) {
		if s == nil {
			return driver.Op{}, notFound(a.ids[i])
		}
		after := s.status
		after.attempt = max(after.attempt-1, 0)
		record := after.encode()
		return driver.Op{
			Kind: driver.Release, Must: driver.HeldByToken, Token: claims[i].Token, Version: s.entry.Version,
			Status: &record, Reason: "whoever claimed it had gone", Event: job.Abandoned,
		}, nil
	}
	if err := a.run(ctx); err != nil {
		c.log.Warn("claims of a caller that had gone stand until their leases run out", "claims", len(claims), "error", err)
	}
}
