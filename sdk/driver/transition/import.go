package transition

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Then returns what an import is to write after its Post, of which posted is the plan
// that was carried out. Nothing refuses it. Finish gets Import.EndedAt as its time.
func Then(op *driver.Op, posted *Plan) Plan {
	f := Facts{Now: posted.At, State: job.Unclaimed, Version: posted.Version, Held: posted.Held, NotBefore: posted.NotBefore}
	return planOf(op.Import.Then, &f)
}

// Imported returns the answer to an import of which then was carried out last: that of
// the last change, with the hold that the first one gave.
func Imported(then *Plan, posted, last driver.Result) driver.Result {
	if then.State != job.Complete {
		last.NotBefore = posted.NotBefore
	}
	return last
}
