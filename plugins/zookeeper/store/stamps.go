package store

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

// stamp returns what the record keeps of an op, if it is not too old.
func (v *view) stamp(op *driver.Op, at instant) transition.Stamp {
	key, ok := transition.KeyOf(op)
	if !ok || v.rec == nil || v.buried(at) {
		return transition.Stamp{}
	}
	for i := len(v.rec.stamps) - 1; i >= 0; i-- {
		s := &v.rec.stamps[i]
		if s.key == key.Random && at.millis()-s.at < at.window.Milliseconds() {
			return transition.Stamp{
				Key: key, Kind: s.kind, Precondition: s.must, Outcome: s.outcome, Token: s.token,
				Version: s.version, Position: at.shown(s.position), At: atMillis(s.at), NotBefore: atMillis(s.notBefore),
			}
		}
	}
	return transition.Stamp{}
}

// buried reports whether the record only waits to be taken away.
func (v *view) buried(at instant) bool {
	return v.rec != nil && v.rec.place == ended && v.forgotten(at)
}

// remember notes the stamp of an op, and forgets the oldest ones if there are too
// many.
func (r *record) remember(s *transition.Stamp, at instant) {
	kept := r.stamps[:0:0]
	for _, s := range r.stamps {
		if at.millis()-s.at < at.window.Milliseconds() {
			kept = append(kept, s)
		}
	}
	if s.Kind != 0 {
		kept = append(kept, stamp{
			key: s.Key.Random, kind: s.Kind, must: s.Precondition, outcome: s.Outcome, token: s.Token, notBefore: millis(s.NotBefore),
		})
	}
	r.stamps = kept[max(0, len(kept)-MaxStamps):]
}
