package store

import (
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// importedPrefix begins the name of a job in the trash that came there from another store. It
// was never in TaskFlow's folder, where it would have had a number.
const importedPrefix = "imported-"

// take completes the change of a post that takes in another store's job, and returns the plan
// of what the job went through there. All of it is one transaction, in which a job that has
// ended, or is in the trash, never comes into TaskFlow's folder.
func (b *board) take(ch *change, op *driver.Op, posted *transition.Plan, v *view, at instant, data []byte, p taskflow.Posting) (then transition.Plan) {
	i, r := op.Import, ch.rec
	r.created, r.exact.created = millis(i.CreatedAt), micros(i.CreatedAt)
	if i.Then == nil {
		ch.newNode, ch.post = data, p
		return then
	}
	moment := *posted
	moment.At = at.wall
	then = transition.Then(op, &moment)
	r.name, r.priority, r.book = p.Name, p.Priority, p.Book
	ch.lock, ch.owner = takeLock, ""
	if then.State == job.Trashed {
		r.place, r.trash, ch.putTrash = inTrash, b.at.Trash+"/"+importedPrefix+p.ID.String(), data
		r.end = &ending{}
	} else {
		r.holdAlways, r.holdUntil = false, 0
		ch.over(&then, v, at)
		if r.end.kept {
			r.end.details = op.Posting.Details
		}
	}
	r.end.at, r.exact.ended = millis(i.EndedAt), micros(i.EndedAt)
	r.remember(&then.Stamp, at)
	return then
}
