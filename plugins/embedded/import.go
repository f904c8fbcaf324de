package embedded

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
)

// then carries out what an imported job went through after its post, at the time when that
// was. Nothing is counted by the wall clock, so that a time of the past shows and no more.
func (v *boardTx) then(op *driver.Op, posted *transition.Plan, s *subject, r driver.Result) driver.Result {
	now := v.at.wall
	v.at.wall = op.Import.EndedAt
	plan := transition.Then(op, posted)
	last := v.change(op.Import.Then, &plan, s)
	v.at.wall = now
	last = transition.Imported(&plan, r, last)
	if after, err := v.lookup(plan.Job); err == nil {
		last.Record = after.Show()
	}
	return last
}
