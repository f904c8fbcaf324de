// Package labels is a policy: a job's label "requires.KEY" has to be what the
// worker has under KEY, and "prefers.KEY" puts the job first for workers of which
// that is true. "a|b" stands for either, "*" for anything that the worker has. Its
// parameter says which keys count, "*" among them that all do.
package labels

import (
	"strings"

	"github.com/boardd/boardd/sdk/policy/guest"
)

// key is one of the parameter's keys, with what jobs say about it.
type key struct{ worker, requires, prefers string }

// What jobs say about a key begins so.
const requires, prefers = "requires.", "prefers."

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	var keys []key
	var all bool // keys count, whatever they are
	first := func(b guest.Batch, j guest.Job) (lacks, wants string, found bool) {
		if all {
			return anyLacking(b, j)
		}
		return lacking(b, j, keys)
	}
	return &guest.Policy{
		Configure: func(b guest.Batch) error {
			for i := range b.Parameter(0).Len() {
				k := strings.Clone(b.Parameter(0).Item(i))
				keys = append(keys, key{worker: k, requires: requires + k, prefers: prefers + k})
				all = all || k == "*"
			}
			return nil
		},
		Eligible: func(b guest.Batch, j guest.Job) guest.Verdict {
			if _, _, found := first(b, j); found {
				return guest.Verdict{Decision: guest.Deny, Reason: 0}
			}
			return guest.Verdict{Decision: guest.Allow}
		},
		Score: func(b guest.Batch, j guest.Job) (score int64) {
			if all {
				return anyPreferred(b, j)
			}
			for i := range keys {
				if wants, ok := j.Label(keys[i].prefers); ok && has(b, keys[i].worker, wants) {
					score++
				}
			}
			return score
		},
		Explain: func(b guest.Batch, j guest.Job) string {
			lacks, wants, found := first(b, j)
			if !found {
				return "the worker has every label that the job requires"
			}
			got, ok := b.Worker(lacks)
			if !ok {
				return "the job requires " + lacks + "=" + wants + ", and the worker has no label " + lacks
			}
			return "the job requires " + lacks + "=" + wants + ", and the worker has " + lacks + "=" + got
		},
	}
}

// lacking returns the first key that the job requires and the worker does not have, if
// there is one, and what the job wants there.
func lacking(b guest.Batch, j guest.Job, keys []key) (lacks, wants string, found bool) {
	for i := range keys {
		if wants, ok := j.Label(keys[i].requires); ok && !has(b, keys[i].worker, wants) {
			return keys[i].worker, wants, true
		}
	}
	return "", "", false
}

// anyLacking is lacking where every key counts.
func anyLacking(b guest.Batch, j guest.Job) (lacks, wants string, found bool) {
	j.EachLabel(func(label, value string) bool {
		if key, ok := strings.CutPrefix(label, requires); ok && !has(b, key, value) {
			lacks, wants, found = key, value, true
		}
		return !found
	})
	return lacks, wants, found
}

// anyPreferred counts the preferences that are met where every key counts.
func anyPreferred(b guest.Batch, j guest.Job) (score int64) {
	j.EachLabel(func(label, value string) bool {
		if key, ok := strings.CutPrefix(label, prefers); ok && has(b, key, value) {
			score++
		}
		return true
	})
	return score
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
