package quota

import (
	"math"

	"github.com/boardd/boardd/sdk/driver"
)

// Counted returns what the store is to count of a job or a claim that comes from another
// store, for the limits that the board has or its tenant. It came within them, and nothing
// keeps it out.
func (b *Board) Counted(op *driver.Op) []driver.Limit {
	board, tenant := b.Limits(), b.quotas.Limits(b.spec.Tenant)
	var list []driver.Limit
	count := func(limited bool, key string, weight int64) {
		if limited {
			list = append(list, limit(key, weight, math.MaxInt64)...)
		}
	}
	if op.Kind == driver.Claim {
		count(board.Claims > 0 || tenant.Claims > 0, keyClaims, 1)
		return list
	}
	count(board.OpenJobs > 0 || tenant.OpenJobs > 0, keyOpenJobs, 1)
	count(board.DetailBytes > 0 || tenant.DetailBytes > 0, keyDetailBytes, int64(len(op.Posting.Details)))
	return list
}
