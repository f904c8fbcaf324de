package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// facts are what the transaction knows of a job when an op comes. owner is the one
// that the op names.
func (v *boardTx) facts(s *subject, owner string) transition.Facts {
	f := transition.Facts{Now: v.at.wall, Generation: v.state.generation, Job: s}
	switch {
	case s.gone():
		e := &s.ended
		f.State, f.Version, f.Position, f.Digest, f.EndedBy = job.Complete, e.version, driver.Position(e.position), e.digest, e.token
		return f
	case s.trashed():
		f.State = job.Trashed
	case s.open():
		f.State = job.Unclaimed
	default:
		return f
	}
	j := &s.job
	f.Version, f.Position, f.Digest = j.version, driver.Position(j.position), j.digest
	f.Held, f.NotBefore = j.held, timeOf(j.notBefore)
	if h := &j.holder; j.claimed {
		f.State = job.Claimed
		f.Holder = driver.Holder{Token: h.token, NoExpiry: h.endless(v.at), Remaining: h.left(v.at), Since: timeOf(h.since)}
		if f.Holder.Owner = owner; owner != "" && owner != string(h.owner) { // else it need not be copied
			f.Holder.Owner = string(h.owner)
		}
	}
	return f
}

// stamp returns what is kept of an op under its key. That of an ending lies in what
// is left of the job.
func (v *boardTx) stamp(op *driver.Op, s *subject) transition.Stamp {
	key, ok := transition.KeyOf(op)
	if !ok {
		return transition.Stamp{}
	}
	if s.gone() && v.board.remembers(s.ended.at, v.at.steady) {
		if kept := s.ended.stamp(); kept.Key == key {
			return kept
		}
	}
	if a, ok := v.recall(mix(key)); ok {
		return a.stamp(key)
	}
	return transition.Stamp{}
}

// mix makes 16 bytes of a key. Two keys may have the same, so the record found under
// them must be compared with the key.
func mix(key transition.Key) [16]byte {
	for i := range key.Random {
		key.Random[i] ^= key.Job[i]
	}
	return key.Random
}

// full returns the key of a limit or rate that keeps a claim from being granted; "": none.
func (v *boardTx) full(plan *transition.Plan, j *jobRecord) (key string, err error) {
	if key := v.noRoom(plan, j); key != "" || len(plan.Rates) == 0 {
		return key, nil
	}
	return transition.Paced(plan.Rates, v.at.wall, v)
}

// noRoom returns the key of a limit that keeps a plan from being carried out; "": none. The
// claim that lapsed makes room.
func (v *boardTx) noRoom(plan *transition.Plan, j *jobRecord) string {
	if len(plan.Within) == 0 {
		return ""
	}
	moves := v.moves[:0].Limits(plan.Within, 1)
	if plan.EndsClaim {
		_ = eachLimit(j.holder.limits, func(key []byte, weight int64) { // checked when it was decoded
			moves = moves.Add(string(key), -weight)
		})
	}
	v.moves = moves
	return transition.Room(plan.Within, moves, v.limit)
}
