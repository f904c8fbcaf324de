// Package rate is a policy: at most so many jobs of a key are claimed in each period.
// Jobs without the label are not limited.
package rate

import (
	"errors"
	"strconv"
	"strings"

	"github.com/boardd/boardd/sdk/policy/guest"
)

// New returns the policy.
//
//go:noinline
func New() *guest.Policy {
	most, limits := int64(1), map[string]int64{}
	return &guest.Policy{
		Configure: func(b guest.Batch) (err error) {
			if n, ok := b.Parameter(1).Int(); ok {
				most = n
			}
			if most < 0 {
				return errors.New("max is " + strconv.FormatInt(most, 10) + ": want 0 or more")
			}
			b.Parameter(3).Each(func(key, text string) bool {
				n, failed := strconv.ParseInt(text, 10, 64)
				if failed != nil || n < 0 {
					err = errors.New("limits: " + key + " is " + text + ": want a whole number, 0 or more")
				}
				limits[strings.Clone(key)] = n
				return err == nil
			})
			return err
		},
		RankKey: func(_ guest.Batch, k guest.Key) guest.Rank { // what runs are the claims of the period
			n, ok := limits[k.Key()]
			if !ok {
				n = most
			}
			if k.Key() == "" {
				return guest.Rank{}
			}
			return guest.Rank{Full: k.Running() >= n, Most: uint32(min(n, 1<<32-1))}
		},
	}
}
