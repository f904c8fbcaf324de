// Package retryfirst is a policy: what was tried before comes before what is new,
// or after it.
package retryfirst

import "github.com/boardd/boardd/sdk/policy/guest"

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	tried := int64(1)
	return &guest.Policy{
		Configure: func(b guest.Batch) error {
			if last, _ := b.Parameter(0).Bool(); last {
				tried = -1
			}
			return nil
		},
		Score: func(_ guest.Batch, j guest.Job) int64 {
			if j.Attempt() > 0 {
				return tried
			}
			return 0
		},
	}
}
