package transition

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A Plan is what the store is to write, in one step.
type Plan struct {
	Do     driver.OpKind // the transition; 0: nothing is to be written
	Job    job.ID
	Reread bool // the facts were cached, and would not let the op be done: ask again with fresh ones

	State job.State // where the job stands after it; Unknown: nothing is left but stamps

	// Version is the job's version after the change, if the store counts versions by
	// one. Finish replaces it by the one that the store gave.
	Version  uint64
	Position driver.Position // after Finish
	At       time.Time       // likewise

	// EndsClaim says that the present claim is removed, and what it counts is no longer
	// counted. With Do a Claim, the present claim is a lapsed one.
	EndsClaim bool

	// Holder is who holds the job after a Claim or an Extend. Remaining is the whole
	// lease, counted from now; 0 with NoExpiry. Finish sets Since and the epoch of the
	// Token for a Claim.
	Holder driver.Holder

	Status *[]byte             // if not nil, the new status record: the op's or the candidate's
	Attach []driver.Attachment // attached records to write or to take away

	Held      bool      // the job's hold after it, changed or not
	NotBefore time.Time // likewise

	Counts    int64  // the posting's limits: 1 counted from now on, -1 no longer, 0 unchanged
	FromTrash bool   // of a Purge: the job was in the trash, and not ended
	Emptied   string // the group that a Post has waited for, which Moves notes; "": none

	Within []driver.Limit // limits that Room checks; a Claim counts them from now on
	Rates  []driver.Rate  // rates that Paced checks, after Room, and in which a Claim is counted

	// Ending is what a Remove leaves: a tombstone with Outcome and EndedBy and, with
	// Keep, a final record with the status. Nothing else is left of the job.
	Ending  driver.Ending
	EndedBy job.Token // zero: by no token

	// Stamp is to be kept under its key for the board's window; with Kind zero there
	// is nothing to keep. Finish fills in its version, position and time.
	Stamp Stamp

	asked time.Time // Result.NotBefore
	Given bool      // the token of a Claim is that of another store: Finish leaves it as it is
}

// planOf returns the plan of an op that is permitted.
func planOf(op *driver.Op, f *Facts) Plan {
	p := Plan{Do: op.Kind, Job: op.Job, State: f.State, Version: f.Version + 1, Status: op.Status, Attach: op.Attach}
	p.hold(op.Hold, f)
	switch op.Kind {
	case driver.Extend:
		p.Version--
		p.Holder = f.Holder
		p.lease(op.Lease, op.NoExpiry, f.rest(op.Most))
	case driver.Release:
		p.State, p.EndsClaim = job.Unclaimed, true
	case driver.Remove:
		p.State, p.EndsClaim, p.Counts = job.Complete, f.claimed(), -1
		p.Held, p.NotBefore, p.asked = false, time.Time{}, time.Time{}
		p.end(op)
	case driver.Trash:
		p.State, p.EndsClaim, p.Counts = job.Trashed, f.claimed(), -1
	case driver.Restore:
		p.State, p.Counts = job.Unclaimed, 1
	case driver.Purge:
		p.State, p.FromTrash = job.Unknown, f.State == job.Trashed
		p.Held, p.NotBefore, p.asked = false, time.Time{}, time.Time{}
	}
	if key, ok := KeyOf(op); ok {
		p.Stamp = Stamp{Key: key, Kind: op.Kind, Precondition: op.Precondition, Outcome: OutcomeOf(op), NotBefore: p.asked.Round(0)}
		if byToken(op) {
			p.Stamp.Token = op.Token
		}
	}
	return p
}

// hold says when the job may next be claimed.
func (p *Plan) hold(h *driver.Hold, f *Facts) {
	if h == nil {
		p.Held, p.NotBefore = f.Held, f.NotBefore
		return
	}
	p.Held, p.NotBefore = h.Always, h.Until
	if h.For > 0 {
		p.NotBefore = f.Now.Add(h.For)
	}
	p.asked = p.NotBefore
}

// lease is the lease of a claim that may go on for rest; 0: as long as it wants.
func (p *Plan) lease(lease time.Duration, none bool, rest time.Duration) {
	switch {
	case rest > 0 && (none || rest < lease):
		p.Holder.Remaining, p.Holder.NoExpiry = rest, false
	case none:
		p.Holder.Remaining, p.Holder.NoExpiry = 0, true
	default:
		p.Holder.Remaining, p.Holder.NoExpiry = lease, false
	}
}

// rest is how much longer a claim may stand that may do so for most in all; 0: for any
// time. While the lease runs there is some left: it may be little where the wall clock,
// on which it is known when a claim was made, has jumped.
func (f *Facts) rest(most time.Duration) time.Duration {
	if most == 0 {
		return 0
	}
	gone := max(f.Now.Sub(f.Holder.Since), 0)
	return max(most-gone, leastRest)
}

// leastRest is the shortest lease that a store is asked to write.
const leastRest = time.Millisecond

func (p *Plan) end(op *driver.Op) {
	if op.Precondition.ByToken() {
		p.EndedBy = op.Token
	}
	if op.Ending != nil && op.Ending.Keep > 0 {
		p.Ending = *op.Ending
	}
	p.Ending.Outcome = OutcomeOf(op)
}

// Finish completes the plan and returns the op's answer, to which the store adds the
// Record of a Post. version is the job's after the change (Plan.Version, if the store
// counts by one), position that of the change, epoch that of a claim's new token, and
// at the time on the store's wall clock.
func Finish(p *Plan, version uint64, position driver.Position, epoch uint64, at time.Time) driver.Result {
	at = at.Round(0)
	p.Version, p.Position, p.At = version, position, at
	r := driver.Result{Position: position, Version: version, At: at, NotBefore: p.asked.Round(0)}
	switch p.Do {
	case driver.Claim:
		if p.Holder.Since = at; !p.Given {
			p.Holder.Token.Epoch = epoch
		}
	case driver.Extend:
		r.Lease = p.Holder.Remaining
	}
	if p.Stamp.Kind != 0 {
		p.Stamp.Version, p.Stamp.Position, p.Stamp.At = version, position, at
	}
	return r
}

// Claimed returns the plan's claim as the claimant gets it: one that Finish completed,
// or one that an earlier try of the op made.
func (p *Plan) Claimed() driver.Claimed {
	c := driver.Claimed{
		Job: p.Job, Token: p.Holder.Token, Version: p.Version, Position: p.Position, At: p.Holder.Since,
	}
	if !p.Holder.NoExpiry {
		c.Lease = p.Holder.Remaining
	}
	return c
}
