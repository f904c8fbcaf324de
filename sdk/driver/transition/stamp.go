package transition

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A Key recognises an op that comes again. It is the job with the token's nonce for an
// op that ends a claim by its token, and the job with Op.Request for others. The answer
// to a claim is kept under Op.Request alone.
type Key struct {
	Job    job.ID
	Random [16]byte
}

// KeyOf returns the key of an op; false: it has none. A Post is recognised by its
// digest, and an Extend does no harm twice.
func KeyOf(op *driver.Op) (Key, bool) {
	switch {
	case op.Kind == driver.Post || op.Kind == driver.Extend:
		return Key{}, false
	case op.Kind == driver.Claim:
		return Key{Random: op.Request}, op.Claim.Remember
	case byToken(op):
		return Key{op.Job, op.Token.Nonce}, true
	}
	return Key{op.Job, op.Request}, op.Request != [16]byte{}
}

// byToken reports whether the op ends a claim and is recognised by its token.
func byToken(op *driver.Op) bool {
	return op.Precondition.ByToken() && op.Kind != driver.Update && op.Kind != driver.Extend
}

// JobOf returns the job that an op is about; that of a Post is its posting's.
func JobOf(op *driver.Op) job.ID {
	if op.Kind == driver.Post {
		return op.Posting.ID
	}
	return op.Job
}

// OutcomeOf returns how a Remove ends the job, and of a Trash what its Ending says;
// NoOutcome of any other op.
func OutcomeOf(op *driver.Op) job.Outcome {
	switch {
	case op.Kind != driver.Remove && (op.Kind != driver.Trash || op.Ending == nil):
		return job.NoOutcome
	case op.Ending == nil:
		return job.Consumed
	}
	return op.Ending.Outcome
}

// A Stamp is what is kept of an op that was done, so that its retry gets the same
// answer. The stamp under an op's key may be that of another op: one token can end its
// claim in several ways, and only the first of them was done.
type Stamp struct {
	Key          Key
	Kind         driver.OpKind
	Precondition driver.Precondition
	Outcome      job.Outcome // of OutcomeOf
	Token        job.Token   // that ended the claim, for an op that is recognised by it

	Version   uint64
	Position  driver.Position
	At        time.Time
	NotBefore time.Time
}

// of reports whether this is the stamp of op, and not of another one with its key.
func (s *Stamp) of(op *driver.Op) bool {
	if s.Kind == 0 || s.Kind != op.Kind || s.Outcome != OutcomeOf(op) {
		return false
	}
	if byToken(op) {
		return s.Token == op.Token && s.Precondition == op.Precondition
	}
	return s.Token.IsZero()
}

// tells adds to a refusal how the op's token ended its claim, if this is the stamp of that.
func (s *Stamp) tells(op *driver.Op, kind job.Kind, why string) string {
	if s.Kind == 0 || !byToken(op) || s.Token != op.Token {
		return why
	}
	if kind != job.LeaseLost {
		return why + "; " + claimEnded + ": " + s.how()
	}
	return claimEnded + ": " + s.how()
}

// how says how a claim ended.
func (s *Stamp) how() string {
	switch {
	case s.Precondition == driver.Lapsed:
		return "its lease ran out"
	case s.Kind == driver.Release:
		return "its holder gave the job back"
	case s.Kind == driver.Trash && s.Outcome == job.Failed:
		return "its holder gave up the last attempt at the job"
	case s.Kind == driver.Trash:
		return "its holder put the job into the trash"
	}
	return "its holder ended the job as " + s.Outcome.String()
}

func (s *Stamp) answer() driver.Result {
	return driver.Result{Repeated: true, Position: s.Position, Version: s.Version, At: s.At, NotBefore: s.NotBefore}
}

// Remember adds claims to kept, the answer to earlier tries of the op: each token once,
// and without the job's record.
func Remember(kept, claims []driver.Claimed) []driver.Claimed {
	for _, c := range claims {
		if !slices.ContainsFunc(kept, func(k driver.Claimed) bool { return k.Token == c.Token }) {
			c.Record = nil
			kept = append(kept, c)
		}
	}
	return kept
}
