// Package deadline is a policy: what is due first comes first. A job without a
// deadline is due some time after it was posted, so that none waits for ever.
package deadline

import (
	"errors"
	"strconv"

	"github.com/boardd/boardd/sdk/policy/guest"
)

const microsecond = 1000

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	var slack int64
	return &guest.Policy{
		Configure: func(b guest.Batch) error {
			ns, _ := b.Parameter(1).Duration()
			if slack = ns / microsecond; slack < 0 {
				return errors.New("slack: want a duration of 0s or more")
			}
			return nil
		},
		Score: func(_ guest.Batch, j guest.Job) int64 {
			at, _ := due(j, slack)
			return -at
		},
		Explain: func(_ guest.Batch, j guest.Job) string {
			at, declared := due(j, slack)
			text := "due at " + strconv.FormatInt(at/1_000_000, 10) + " s since 1970"
			if !declared {
				text += ", since its details have no deadline"
			}
			return text
		},
	}
}

// due returns when a job is due, in µs since 1970, and whether it says so itself.
func due(j guest.Job, slack int64) (at int64, declared bool) {
	if ns, ok := j.Fact(0).Time(); ok {
		return ns / microsecond, true
	}
	return j.Created()/microsecond + slack, false
}
