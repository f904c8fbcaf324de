// Package fairshare is a policy: whoever has the least running for its weight
// comes first, then whoever had the least lately.
package fairshare

import (
	"errors"
	"strings"

	"github.com/boardd/boardd/sdk/policy/guest"
)

// unit is a weight of 1. Weights have three digits behind the point.
const unit = 1000

// Largest values of the two parts of a rank. Beyond them keys are alike.
const (
	maxRunning = 1<<31 - 1
	servedBits = 30
	maxServed  = 1<<servedBits - 1
)

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	weights := map[string]int64{}
	return &guest.Policy{
		Configure: func(b guest.Batch) (err error) {
			b.Parameter(1).Each(func(key, text string) bool {
				w, ok := weight(text)
				if !ok {
					err = errors.New("weights: " + key + " is " + text + ": want a number from 0 to 1000000 with at most three digits behind the point")
				}
				weights[strings.Clone(key)] = w
				return ok
			})
			return err
		},
		Score: func(guest.Batch, guest.Job) int64 { return guest.NoOpinion }, // within a key the board's order stands
		RankKey: func(_ guest.Batch, k guest.Key) guest.Rank {
			w, ok := weights[k.Key()]
			switch {
			case !ok:
				w = unit
			case w == 0:
				return guest.Rank{Score: -1 << 62}
			}
			return guest.Rank{Score: -(share(k.Running(), w, maxRunning)<<servedBits | share(k.Served(), w, maxServed))}
		},
	}
}

// share divides a count by a weight, in units of a thousandth.
func share(count, weight, most int64) int64 {
	const times = unit * 1000
	if count <= 0 {
		return 0
	}
	if count > most {
		return most
	}
	return min(count*times/weight, most)
}

// weight reads a number with at most three digits behind the point, in units of a
// thousandth.
func weight(text string) (w int64, ok bool) {
	whole, part, _ := strings.Cut(text, ".")
	if whole == "" || len(whole) > 7 || len(part) > 3 {
		return 0, false
	}
	for len(part) < 3 {
		part += "0"
	}
	for _, c := range []byte(whole + part) {
		if c < '0' || c > '9' {
			return 0, false
		}
		w = w*10 + int64(c-'0')
	}
	return w, w <= 1_000_000*unit
}
