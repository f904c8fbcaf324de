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
	if i.Then == nil || i.Then.Kind == driver.Claim {
		ch.newNode, ch.post = data, p
	}
	if i.Then == nil {
		return then
	}
	then = b.passed(ch, op, posted, v, at)
	if ch.newNode != nil {
		return then
	}
	r.name, r.priority, r.book = p.Name, p.Priority, p.Book
	switch {
	case then.State == job.Trashed:
		r.trash, ch.putTrash = b.at.Trash+"/"+importedPrefix+p.ID.String(), data
	case r.end.kept:
		r.end.details = op.Posting.Details
	}
	return then
}

// goAlong completes the change of an update that has an imported job follow the other store, and
// returns the plan of what the job went through there.
func (b *board) goAlong(ch *change, op *driver.Op, updated *transition.Plan, v *view, at instant) transition.Plan {
	then := b.passed(ch, op, updated, v, at)
	if then.State != job.Claimed {
		v.carry(ch.rec)
		ch.takeNode = true
	}
	return then
}

// passed writes into a change what an imported job went through in the other store.
func (b *board) passed(ch *change, op *driver.Op, before *transition.Plan, v *view, at instant) transition.Plan {
	moment := *before
	moment.At = at.wall
	then := transition.Then(op, &moment)
	r, since := ch.rec, op.Import.EndedAt
	if then.State == job.Claimed {
		b.grant(&then, ch)
		r.claim.since, r.claim.exact = millis(since), micros(since)
		return then
	}
	ch.lock, ch.owner = takeLock, ""
	if then.State == job.Trashed {
		r.place, r.end = inTrash, &ending{}
	} else {
		r.holdAlways, r.holdUntil = false, 0
		ch.over(&then, v, at)
	}
	r.end.at, r.exact.ended = millis(since), micros(since)
	r.remember(&then.Stamp, at)
	return then
}
