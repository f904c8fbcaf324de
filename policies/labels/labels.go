// Package labels is a policy: a job's label "requires.KEY" has to be what the
// worker has under KEY, and "prefers.KEY" puts the job first for workers of which
// that is true. "a|b" stands for either, "*" for anything that the worker has.
package labels

import (
	"strings"

	"github.com/boardd/boardd/sdk/policy/guest"
)

// key is one of the parameter's keys, with what jobs say about it.
type key struct{ worker, requires, prefers string }

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	var keys []key
	return &guest.Policy{
		Configure: func(b guest.Batch) error {
			for i := range b.Parameter(0).Len() {
				k := strings.Clone(b.Parameter(0).Item(i))
				keys = append(keys, key{worker: k, requires: "requires." + k, prefers: "prefers." + k})
			}
			return nil
		},
		Eligible: func(b guest.Batch, j guest.Job) guest.Verdict {
			if lacking(b, j, keys) >= 0 {
				return guest.Verdict{Decision: guest.Deny, Reason: 0}
			}
			return guest.Verdict{Decision: guest.Allow}
		},
		Score: func(b guest.Batch, j guest.Job) (score int64) {
			for i := range keys {
				if wants, ok := j.Label(keys[i].prefers); ok && has(b, keys[i].worker, wants) {
					score++
				}
			}
			return score
		},
		Explain: func(b guest.Batch, j guest.Job) string {
			i := lacking(b, j, keys)
			if i < 0 {
				return "the worker has every label that the job requires"
			}
			wants, _ := j.Label(keys[i].requires)
			got, ok := b.Worker(keys[i].worker)
			if !ok {
				return "the job requires " + keys[i].worker + "=" + wants + ", and the worker has no label " + keys[i].worker
			}
			return "the job requires " + keys[i].worker + "=" + wants + ", and the worker has " + keys[i].worker + "=" + got
		},
	}
}

// lacking returns the first key that the job requires and the worker does not
// have, -1 if there is none.
func lacking(b guest.Batch, j guest.Job, keys []key) int {
	for i := range keys {
		if wants, ok := j.Label(keys[i].requires); ok && !has(b, keys[i].worker, wants) {
			return i
		}
	}
	return -1
}

// has reports whether the worker's label is one of those that are wanted.
func has(b guest.Batch, key, wants string) bool {
	got, ok := b.Worker(key)
	if !ok {
		return false
	}
	for {
		one, rest, more := strings.Cut(wants, "|")
		if one == got || one == "*" {
			return true
		}
		if !more {
			return false
		}
		wants = rest
	}
}
