package store

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

func endsByToken(op *driver.Op) bool { return op.Precondition.ByToken() && op.Kind != driver.Update }

// keyOf returns what an op is recognised by; false: by nothing.
func keyOf(op *driver.Op) ([16]byte, bool) {
	switch {
	case op.Kind == driver.Extend:
		return [16]byte{}, false
	case endsByToken(op):
		return op.Token.Nonce, true
	}
	return op.Request, op.Request != [16]byte{}
}

// outcomeOf returns how the op ends the job.
func outcomeOf(op *driver.Op) job.Outcome {
	switch {
	case op.Kind != driver.Remove:
		return job.NoOutcome
	case op.Ending == nil:
		return job.Consumed
	}
	return op.Ending.Outcome
}

// repeat answers an op that was done before.
func (v *view) repeat(op *driver.Op, at instant) (driver.Result, bool) {
	key, ok := keyOf(op)
	if !ok || v.rec == nil || v.buried(at) {
		return driver.Result{}, false
	}
	for i := range v.rec.stamps {
		s := &v.rec.stamps[i]
		switch {
		case s.key != key || s.kind != op.Kind || s.outcome != outcomeOf(op):
		case at.millis()-s.at >= at.window.Milliseconds():
		case endsByToken(op) && (s.token != op.Token || s.must != op.Precondition):
		default:
			return driver.Result{
				Repeated: true, Position: driver.Position(s.position), Version: s.version,
				At: atMillis(s.at), NotBefore: atMillis(s.notBefore),
			}, true
		}
	}
	return driver.Result{}, false
}

// buried reports whether the record only waits to be taken away.
func (v *view) buried(at instant) bool {
	return v.rec != nil && v.rec.place == ended && v.forgotten(at)
}

// remember notes an op, so that its retry is recognised, and forgets the oldest
// ones if there are too many.
func (r *record) remember(op *driver.Op, at instant) {
	kept := r.stamps[:0:0]
	for _, s := range r.stamps {
		if at.millis()-s.at < at.window.Milliseconds() {
			kept = append(kept, s)
		}
	}
	r.stamps = kept
	key, ok := keyOf(op)
	if !ok {
		return
	}
	s := stamp{key: key, kind: op.Kind, must: op.Precondition, outcome: outcomeOf(op)}
	if endsByToken(op) {
		s.token = op.Token
	}
	if op.Hold != nil {
		s.notBefore = r.holdUntil
	}
	r.stamps = append(r.stamps, s)
	if n := len(r.stamps) - MaxStamps; n > 0 {
		r.stamps = r.stamps[n:]
	}
}
