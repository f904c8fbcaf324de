// Package aging is a policy: who waits long enough overtakes higher priorities.
// Each class of priority is worth a fixed time of waiting, so the order of two
// jobs never changes and scores need no refreshing.
package aging

import (
	"errors"
	"strconv"

	"github.com/boardd/boardd/sdk/policy/guest"
)

// Times are in µs here: their differences then have room in 64 bits, whatever
// the times are.
const microsecond = 1000

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	var step int64
	return &guest.Policy{
		Configure: func(b guest.Batch) error {
			ns, _ := b.Parameter(0).Duration()
			if step = ns / microsecond; step < 0 || step > maxStep {
				return errors.New("step: want a duration from 0s to 8760h")
			}
			return nil
		},
		Score: func(_ guest.Batch, j guest.Job) int64 { return head(j, step) - j.Created()/microsecond },
		Explain: func(_ guest.Batch, j guest.Job) string {
			return "its priority is worth " + strconv.FormatInt(head(j, step)/1_000_000, 10) + " s of waiting"
		},
	}
}

// maxStep is a year.
const maxStep = 365 * 24 * 3600 * 1_000_000

// head is the start that a job's priority gives it over one of the lowest.
func head(j guest.Job, step int64) int64 { return int64(2-j.Priority()) * step }
