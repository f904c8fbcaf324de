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
// lets it have. With a wait it waits until there is one; when the wait is over,
// the answer is empty. A caller whose context has ended is given nothing.
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
		response, err := c.chosen(ctx, req.IDs)
		return c.withResults(ctx, response), err
	}
	defer c.release()
	response, err := c.best(ctx)
	return c.withResults(ctx, response), err
}

// withResults adds the results of operations that were finished under an earlier
// claim. Without them the claim is good all the same.
func (c *claimer) withResults(ctx context.Context, response ClaimResponse) ClaimResponse {
	if len(c.resumed) == 0 || len(response.Claims) == 0 {
		return response
	}
	ids := make([]job.ID, len(c.resumed))
	for n, i := range c.resumed {
		ids[n] = response.Claims[i].ID
	}
	attached, err := c.board.readAttached(ctx, ids)
	if err != nil {
		c.board.log.WarnContext(ctx, "claims were given without the results of earlier ones", "claims", len(ids), "error", err)
		return response
	}
	for n, i := range c.resumed {
		response.Steps[i].results = results(attached[n])
	}
	return response
}

// claimer is one call of Claim.
type claimer struct {
	*selector
	opened   *driver.BoardStatus
	owner    string
	most     int
	begins   int // of these, how many begin at once; the others are given ahead
	lease    time.Duration
	noExpiry bool
	wait     time.Duration
	news     bool // the wait ends with news of claims in hand

	remember bool
	request  [16]byte
	asked    bool // an op with this request was sent

	doubt error // of a try of which the store did not say what came of it; nil: there is none, or that is known by now

	taker   *Taker    // for the recording, if there is one
	decided time.Time // for the recording: when the jobs were chosen
	claims  []job.Claim
	steps   []Steps           // of the claims' jobs
	stands  []driver.Position // as of which each of the claims stands
	resumed []int             // indexes of the claims whose jobs have results of earlier claims
	bytes   int               // of the claimed jobs' details and operations
	passed  int               // candidates that the store passed over
	late    []job.ID          // reserved, though by now the policies deny them, or this call had them
	key     index.Key         // of the worker class under which the jobs in late were taken
	timed   bool              // the next jobs in line are not to be given ahead, see untimed
	away    bool              // the store did not answer a round, when there were claims already
	ended   bool              // nothing is added: the store gave an earlier answer to this request, or does not close it
}

func (b *Board) claimer(ctx context.Context, req *ClaimRequest) (*claimer, error) {
	w, err := b.selectorOf(req.Names, req.Filter, req.WorkerLabels)
	if err != nil {
		return nil, err
	}
	if req.Owner == "" {
		return nil, job.Errorf(job.Invalid, "owner: want a name of 1 to %d bytes", job.MaxOwner)
	}
	if err := checkText("owner", req.Owner, job.MaxOwner); err != nil {
		return nil, err
	}
	c := &claimer{selector: w, owner: req.Owner, most: max(req.Max, 1), begins: max(req.Max, 1), noExpiry: req.NoExpiry, wait: req.Wait}
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
	if err := c.atOnce(ctx); err != nil || len(c.claims) > 0 || c.wait <= 0 {
		return c.response(), err
	}
	return c.stand(ctx)
}

// atOnce claims the best jobs that there are.
func (c *claimer) atOnce(ctx context.Context) error {
	c.board.order.fresh(ctx)
	if paused, _ := c.board.pause.state(); !paused {
		class, err := c.classNow(ctx)
		if err == nil {
			err = c.grab(ctx, class)
		}
		// Nothing was claimed, and the board's rules were replaced meanwhile. A class of
		// replaced rules is not judged any more, so that the index offers it nothing. Only
		// a try under the rules in force says that there is no job. An error, or an earlier
		// answer to this request (ended), stands as it is.
		for err == nil && len(c.claims) == 0 && !c.ended && !c.rules.current() {
			c.selector = c.by(c.board.rules.Load())
			if class, err = c.classNow(ctx); err == nil {
				err = c.grab(ctx, class)
			}
		}
		if err := c.over(ctx, err); err != nil || len(c.claims) > 0 {
			return err
		}
	}
	if c.remember && !c.asked {
		return c.over(ctx, c.send(ctx, nil, 0)) // only for the answer that an earlier try was given
	}
	return nil
}

// classNow returns the caller's worker class of now. If its key is another one than
// before, the jobs in late are given back: the new class may be allowed to have them.
// The key is made again after the class was judged, since a policy by time may have
// said until when its verdicts stand, and that may be over by now. It is made again once:
// where judging takes longer than verdicts stand, no class is ever that of now, and
// recheck finds what is over.
func (c *claimer) classNow(ctx context.Context) (class *index.Class, err error) {
	now := c.class()
	for range 2 {
		if now != c.key {
			c.release()
			c.key = now
		}
		if class, err = c.classBy(ctx, now); err != nil || now.At == 0 {
			return class, err
		}
		if now = c.class(); now == c.key {
			return class, nil
		}
	}
	return class, nil
}

// over turns an error into that of the call. If the caller's context has ended, the
// claims are given back and the call is Interrupted. An error of the store is the
// call's. An error of a policy is dropped: a policy that fails denies.
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

// errStore marks errors of the store, to tell them from those of policies.
var errStore = errors.New("the store did not grant the claim")

func (c *claimer) response() ClaimResponse { return ClaimResponse{Claims: c.claims, Steps: c.steps} }

// grab claims from what the index offers until it has enough or nothing is left.
func (c *claimer) grab(ctx context.Context, class *index.Class) error {
	spare := c.board.contention.spare()
	for round := 0; len(c.claims) < c.most && !c.ended && round < maxRounds; round++ {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		need := c.allowance()
		if need == 0 {
			return nil
		}
		want := need + spare
		if most := c.opened.Capabilities.MaxCandidates; most > 0 {
			want = min(want, most)
		}
		c.decided = time.Now()
		entries := c.board.index.Take(ctx, class, want)
		if len(entries) == 0 {
			return nil
		}
		passed := c.passed
		if err := c.send(ctx, entries, min(need, len(entries))); err != nil || c.away {
			return err
		}
		if c.timed {
			c.most = max(c.begins, len(c.claims))
		}
		c.board.contention.met(c.passed - passed)
		if c.passed > passed { // other hosts claim from the head of the order, too
			spare = max(c.board.contention.spare(), min(need, maxSpare))
		}
	}
	return nil
}

// allowance is how many more jobs to claim now, so that the answer stays within
// MaxClaimBytes: as many as would fit if they were like those before. The first
// job is always given.
func (c *claimer) allowance() int {
	need := c.most - len(c.claims)
	if len(c.claims) == 0 {
		return min(need, firstRound)
	}
	return min(need, max(MaxClaimBytes-c.bytes, 0)/(1+c.bytes/len(c.claims)))
}

// firstRound is how many jobs are claimed before it is known how large they are.
const firstRound = 32

// Bounds of one claim call: how often it goes to the store, and how many
// candidates more than needed it offers once some were gone.
const (
	maxRounds = 1 << 10
	maxSpare  = 8
)

// giveBack ends the claims that were made for a caller that has gone, and refunds
// their attempts. Those of a call with a request id stand: the caller may send the
// call again, and is then given the same ones.
func (c *claimer) giveBack(ctx context.Context) {
	if len(c.claims) == 0 || c.remember {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterwards)
	defer cancel()
	claims := c.claims
	c.claims, c.steps, c.stands, c.resumed = nil, nil, nil, nil
	a := &alteration{board: c.board, opened: c.opened, ids: make([]job.ID, len(claims)), errs: make([]error, len(claims))}
	for i := range claims {
		a.ids[i] = claims[i].ID
	}
	a.enough = func(_ int, s *currentJob) bool { return s != nil }
	a.plan = func(i int, s *currentJob) (driver.Op, error) {
		if s == nil {
			return driver.Op{}, notFound(a.ids[i])
		}
		after := s.status
		after.Attempt, after.Ahead = max(after.Attempt-1, 0), 0
		return c.board.giveUp(driver.Op{
			Kind: driver.Release, Precondition: driver.HeldByToken, Token: claims[i].Token, Version: s.entry.Version,
			Reason: "whoever claimed it had gone", Event: job.Abandoned,
		}, s, after), nil
	}
	if err := a.run(ctx); err != nil {
		c.board.log.WarnContext(ctx, "claims of a caller that had gone stand until their leases run out", "claims", len(claims), "error", err)
	}
}
