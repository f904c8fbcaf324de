package check

import (
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/sdk/job"
)

// state is what the model knows of one job. ends lists which claims ended it in which
// way, so that a repeated ending is known.
type state struct {
	phase    job.State // Unknown: never posted, or purged
	posting  string
	token    string        // of the claim; anyToken if nobody was told
	owner    string        // of the claim
	earliest time.Duration // when the lease may have run out
	delayed  bool          // it may not be claimable for a while
	lapsed   bool          // its claim's lease is over, and perhaps nobody has ended the claim in the store yet
	ends     string
	doneBy   string // the token that consumed it

	timeout  time.Duration // of the job; 0: none
	over     time.Duration // when the claim may have stood for that long
	attempts int           // that the job may have; 0: any number
	tries    int           // how many it had, as far as nobody took one back

	// undecided is until when it may not be settled that a lease is over, though a token was
	// refused for that: a claim that nobody has ended in the store goes on. Each host on ZooKeeper
	// tells by itself when one is over, and PostgreSQL counts leases anew when it was started again.
	// With a board that moves it comes to the next store, and has a second there.
	undecided time.Duration

	// moves says that the job's board may move: a store that it comes to does not know which
	// claims were abandoned or trashed before the job was purged, or consumed before it was posted
	// anew.
	moves, purged bool
}

// anyToken is the token of a claim whose client was not told.
const anyToken = "?"

func (s state) free() state {
	s.phase, s.token, s.owner, s.earliest, s.over, s.lapsed = job.Unclaimed, "", "", 0, 0, false
	return s
}

// lapse is the end of a claim by its lease. By hand it can be released until somebody has
// ended it in the store.
func (s state) lapse() state {
	s = s.free()
	s.lapsed = true
	return s
}

func (s state) off(phase job.State) state {
	s = s.free()
	s.phase, s.delayed = phase, false
	return s
}

func (s state) endedBy(call history.Call, token string) bool {
	return token != "" && strings.Contains(s.ends, string(call)+":"+token+";")
}

// withEnd notes an ending. They are kept in the order of their names: two states that had the
// same ones are the same.
func (s state) withEnd(call history.Call, token string) state {
	if !s.endedBy(call, token) {
		all := append(strings.SplitAfter(s.ends, ";"), string(call)+":"+token+";")
		slices.Sort(all)
		s.ends = strings.Join(all, "")
	}
	return s
}

func (s state) holds(token string) bool { return s.phase == job.Claimed && s.token == token }

func (s state) gone() bool { return s.phase == job.Unknown || s.phase == job.Complete }

// next returns the states that a call may leave behind, none if its answer was
// impossible. A lease may run out at any moment from its end on.
func (s state) next(op history.Op) (all []any) {
	from := []state{s}
	if s.phase == job.Claimed && op.End >= s.earliest {
		from = append(from, s.lapse())
		if s.exhausted() {
			from = append(from, s.off(job.Trashed))
		}
	}
	if s.lapsed && s.exhausted() {
		from = append(from, s.off(job.Trashed)) // a server has seen to it since
	}
	if op.Call == history.Extend && op.Outcome == history.Refused && op.Retries && s.holds(op.Token) && op.End >= op.Begin+op.Lease*99/100 {
		from = append(from, s.lapse()) // an earlier try gave it a lease that has run out meanwhile
	}
	if op.Begin < s.undecided && len(from) > 1 && op.Outcome == history.Refused && s.free().refuses(op) {
		all = append(all, s)
	}
	for _, s := range from {
		switch {
		case op.Outcome == history.Unknown:
			all = append(all, s)
			if t, ok := s.after(op); ok && t != s {
				all = append(all, t)
				all = append(all, s.usedUp(op)...)
			}
		case op.Outcome == history.Refused:
			if s.refuses(op) {
				all = append(all, s)
			}
		case op.Call == history.Get:
			if s.shows(op) {
				all = append(all, s)
			}
		default:
			if t, ok := s.after(op); ok {
				all = append(all, t)
				all = append(all, s.usedUp(op)...)
			}
		}
	}
	return all
}

// exhausted reports whether the claim may be the job's last attempt.
func (s state) exhausted() bool { return s.attempts > 0 && s.tries >= s.attempts }

// usedUp returns the job in the trash where that may come of giving up its claim: unless
// the attempt was taken back.
func (s state) usedUp(op history.Op) []any {
	if op.Call != history.Abandon || !s.holds(op.Token) || !s.exhausted() {
		return nil
	}
	t, _ := s.ended(op)
	return []any{t.off(job.Trashed)}
}

// until is when a lease that begins with a call may be over.
func (s state) until(op history.Op) time.Duration {
	until := op.Begin + op.Lease*99/100
	if s.over > 0 {
		until = min(until, s.over)
	}
	return until
}

func (s state) shows(op history.Op) bool {
	return s.phase == op.State && (op.Shown == "" || s.posting == "" || op.Shown == s.posting) &&
		(s.phase != job.Claimed || op.Holder == "" || s.owner == "" || s.owner == op.Holder)
}

// after returns the state after a call that was done, now or before, and whether it
// can have been.
func (s state) after(op history.Op) (state, bool) {
	switch op.Call {
	case history.Post:
		if s.phase != job.Unknown {
			return s, op.Posting == "" || s.posting == "" || s.posting == op.Posting
		}
		s.posting, s.timeout, s.attempts, s.tries = op.Posting, op.Timeout, op.Attempts, 0
		return s.off(job.Unclaimed), true
	case history.Claim:
		return s.claimed(op)
	case history.Extend:
		ok := s.holds(op.Token)
		s.earliest = s.until(op) // anew: it may be sooner than before
		return s, ok
	case history.Consume, history.Abandon, history.Trash:
		return s.ended(op)
	case history.Get:
		return s, true
	}
	return s.byHand(op)
}

func (s state) claimed(op history.Op) (state, bool) {
	if s.phase != job.Unclaimed {
		return s, false
	}
	s.phase, s.token, s.owner, s.delayed, s.lapsed = job.Claimed, op.Granted, op.Owner, false, false
	if s.timeout > 0 {
		s.over = op.Begin + s.timeout*99/100
	}
	if s.attempts > 0 { // else the number would only tell states apart that are the same
		s.tries++
	}
	s.earliest = s.until(op)
	if op.Outcome == history.Unknown {
		s.token, s.earliest = anyToken, 0 // it may be given back at once
	}
	return s, true
}

// ended is the end of a claim by its token.
func (s state) ended(op history.Op) (state, bool) {
	if s.endedBy(op.Call, op.Token) {
		return s, true
	}
	held := s.holds(op.Token)
	s = s.withEnd(op.Call, op.Token)
	switch op.Call {
	case history.Consume:
		s.doneBy = op.Token
		return s.off(job.Complete), held
	case history.Trash:
		return s.off(job.Trashed), held
	}
	s = s.free()
	s.delayed = op.Delay > 0
	return s, held
}

// byHand is a change that needs no token.
func (s state) byHand(op history.Op) (state, bool) {
	switch op.Call {
	case history.SetAside:
		return s.off(job.Trashed), s.phase == job.Unclaimed
	case history.Restore:
		return s.off(job.Unclaimed), s.phase == job.Trashed
	case history.Purge:
		ok := s.phase == job.Trashed || s.phase == job.Complete
		s = s.off(job.Unknown)
		s.posting, s.purged = "", true
		return s, ok
	case history.Release:
		return s.free(), s.phase == job.Claimed || s.lapsed
	case history.Cancel:
		return s.off(job.Complete), s.phase == job.Unclaimed || s.phase == job.Claimed && op.Steps > 0 // none of which was begun
	}
	return s, false
}

// refuses reports whether a call can be answered with its error.
func (s state) refuses(op history.Op) bool {
	switch op.Kind {
	case job.Unavailable, job.QuotaExceeded, job.Aborted, job.Precondition, job.Unauthenticated, job.PermissionDenied, job.Unsupported:
		// Operations that were done stay done when the claim is given up, and are not canceled. Nor is
		// a job whose claim nobody has ended in the store yet.
		return op.Kind != job.Precondition || op.Call != history.Cancel || s.phase != job.Unclaimed || s.lapsed || op.Steps > 0
	}
	onBoard := s.phase == job.Unclaimed || s.phase == job.Claimed
	switch op.Call {
	case history.Get:
		return op.Kind == job.NotFound && s.phase == job.Unknown
	case history.Post:
		if op.Taken {
			return s.phase == job.Unknown
		}
		return op.Kind == job.AlreadyExists && s.phase != job.Unknown && (s.posting == "" || s.posting != op.Posting)
	case history.Claim:
		return op.Kind == job.AlreadyClaimed && s.phase == job.Claimed || op.Kind == job.NotFound && !onBoard ||
			op.Kind == job.NotEligible && (s.phase == job.Trashed || s.delayed || onBoard && op.Judged)
	case history.Restore:
		if op.Taken {
			return s.phase == job.Trashed
		}
		return op.Kind == job.AlreadyExists && onBoard || op.Kind == job.NotFound && s.gone()
	case history.Purge:
		return op.Kind == job.NotEligible && onBoard || op.Kind == job.NotFound && s.phase == job.Unknown
	case history.SetAside:
		return op.Kind == job.AlreadyClaimed && s.phase == job.Claimed || op.Kind == job.NotFound && !onBoard || op.Kind == job.NotEligible && s.phase == job.Trashed
	case history.Release:
		return op.Kind == job.NotClaimed && (s.phase == job.Unclaimed || s.phase == job.Trashed) || op.Kind == job.NotFound && !onBoard
	case history.Cancel:
		return op.Kind == job.NotFound && !onBoard
	}
	done := s.phase == job.Complete && s.doneBy == op.Token
	forgotten := s.moves && s.purged && (op.Call != history.Consume || !s.gone())
	return op.Kind == job.LeaseLost && !s.holds(op.Token) && (!s.gone() || done) && (!s.endedBy(op.Call, op.Token) || forgotten) ||
		op.Kind == job.NotFound && s.gone() && !done
}
