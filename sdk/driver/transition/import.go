package transition

import (
	"math"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Then returns what an import is to write after its Post or Update, of which posted is the
// plan that was carried out. Nothing refuses it. Finish gets Import.EndedAt as its time.
func Then(op *driver.Op, posted *Plan) Plan {
	f := Facts{Now: posted.At, State: job.Unclaimed, Version: posted.Version, Held: posted.Held, NotBefore: posted.NotBefore}
	if op.Import.Then.Kind == driver.Claim {
		return claimThen(op.Import.Then, &f)
	}
	return planOf(op.Import.Then, &f)
}

// claimThen is the plan of a claim that was made in another store.
func claimThen(then *driver.Op, f *Facts) Plan {
	p := Plan{
		Do: driver.Claim, Job: then.Job, State: job.Claimed, Version: f.Version + 1, Held: f.Held, NotBefore: f.NotBefore,
		Within: slices.Clone(then.Limits), Holder: driver.Holder{Owner: then.Owner, Token: then.Token}, Given: true,
	}
	for i := range p.Within {
		p.Within[i].Max = math.MaxInt64 // it was within them before
	}
	p.lease(then.Lease, then.NoExpiry, 0)
	return p
}

// Imported returns the answer to an import of which then was carried out last: that of
// the last change, with the hold that the first one gave.
func Imported(then *Plan, posted, last driver.Result) driver.Result {
	if then.State != job.Complete {
		last.NotBefore = posted.NotBefore
	}
	return last
}
