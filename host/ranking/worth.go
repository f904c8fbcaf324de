package ranking

import (
	"math"
	"time"

	"github.com/boardd/boardd/sdk/policy"
)

// Rungs is for how many counts a key is ranked at once: the present one and those after
// each of the next claims, so that the policy is not asked between claims of one call.
const Rungs = 4

// KeyBatch is how many keys a policy is asked about at a time.
const KeyBatch = policy.MaxBatch / Rungs

// Two values of a key's worth that are no scores.
const (
	FullKey  int64 = math.MinInt64 // nothing of it may be claimed
	Unranked int64 = math.MaxInt64 // nobody knows: the policy has to be asked first
)

// Worth is what a key is worth by its rank, with so many of it running.
func Worth(r policy.Rank, running int64) int64 {
	if r.Full || r.Most > 0 && running >= r.Most {
		return FullKey
	}
	return min(max(r.Score, FullKey+1), Unranked-1)
}

// Ask appends Rungs questions about one key to keys: with its present counts, and with
// those after each of the next claims. Oldest is the same in all of them, since it is not
// known which job each claim takes.
func Ask(keys []policy.Key, key string, c Counts, oldest time.Time) []policy.Key {
	for n := range int64(Rungs) {
		after := c.after(n)
		k := policy.Key{Key: key, Running: after.Running, Waiting: after.Waiting, Served: after.Served}
		if k.Waiting > 0 {
			k.Oldest = oldest
		}
		keys = append(keys, k)
	}
	return keys
}

// Ranked is what a policy said of a key, and of which counts. The zero value is that
// of a key of which it said nothing.
type Ranked struct {
	Most   int64  // how many of it may run; 0: the policy does not say
	Serial uint32 // of the ranking; 0: none

	worth [Rungs]int64 // with so many claims more than the base
	base  Counts
	moved bool // the counts have changed otherwise than claims change the base
}

// Rank writes down what a policy said of the keys that Ask made.
func (r *Ranked) Rank(ranks []policy.Rank, base Counts, serial uint32) {
	r.Most = ranks[0].Most
	for i, rank := range ranks[:Rungs] {
		rank.Most = 0 // Ranked.Worth compares it with what is running then
		r.worth[i] = Worth(rank, 0)
	}
	r.base, r.Serial, r.moved = base, serial, false
}

// Keep is Rank where the policy failed: the key comes where it came before.
func (r *Ranked) Keep(now Counts, serial uint32) {
	if r.Serial != 0 { // else 0 each
		last := r.worth[min(max(now.Running-r.base.Running, 0), Rungs-1)]
		for i := range r.worth {
			r.worth[i] = last
		}
	}
	r.base, r.Serial, r.moved = now, serial, false
}

// Look compares the counts with those that the policy was asked about. It returns
// whether it is to be asked again: all that may have happened is that some of the
// waiting are running.
func (r *Ranked) Look(now Counts) (again bool) {
	if !r.moved {
		n := now.Running - r.base.Running
		r.moved = r.Serial == 0 || n < 0 || n >= Rungs || r.base.Waiting-now.Waiting != n || now.Served-r.base.Served != n
	}
	return r.moved
}

// Worth is what the key is worth by what is known of it.
func (r *Ranked) Worth(running int64) int64 {
	switch n := running - r.base.Running; {
	case r.Most > 0 && running >= r.Most:
		return FullKey
	case r.Serial == 0, n >= Rungs:
		return Unranked
	default:
		return r.worth[max(n, 0)]
	}
}
