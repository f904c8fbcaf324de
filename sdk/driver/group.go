package driver

import (
	"github.com/boardd/boardd/sdk/job"
)

// A Group says how the jobs stand that were posted with one Op.Group. Each job is counted
// in exactly one of the numbers, by the step that brings it there, so that their sum is how
// many were posted. A job that another program takes off the board is counted when the
// driver finds that out. Only for stores with Capabilities.Groups.
type Group struct {
	Open     int64 // on the board
	Trashed  int64
	Consumed int64 // ended so,
	Canceled int64 // likewise
	Failed   int64 // likewise
	Purged   int64 // taken away from the trash
	Closed   bool  // see Op.Close
	Followed bool  // a Post was done that waited for it, see Op.Emptied
}

// Posted is how many jobs were posted with the group.
func (g *Group) Posted() int64 {
	return g.Open + g.Trashed + g.Consumed + g.Canceled + g.Failed + g.Purged
}

// MaxGroup is the longest name of a group, in bytes.
const MaxGroup = 256

// checkGroup looks at what an op says of groups.
func (op *Op) checkGroup(c Capabilities) error {
	asked := op.Kind == Tally
	switch {
	case op.Group == "" && op.Emptied == "" && !op.Close && !op.Forget && !asked:
		return nil
	case !c.Groups:
		return job.Errorf(job.Invalid, "groups are not counted here: want an op that is about none, got %.80q", op.Group+op.Emptied)
	case !asked && (op.Close || op.Forget):
		return job.Errorf(job.Invalid, "an op of kind %d closes or forgets a group: want %d", op.Kind, Tally)
	case op.Kind != Post && (op.Emptied != "" || !asked):
		return job.Errorf(job.Invalid, "an op of kind %d names a group: want %d, or %d without Emptied", op.Kind, Post, Tally)
	case asked && op.Group == "":
		return job.Errorf(job.Invalid, "the op asks for no group: want a name of 1 to %d bytes", MaxGroup)
	case op.Close && op.Forget:
		return job.Errorf(job.Invalid, "the op closes the group %.80q and forgets it: want one of the two", op.Group)
	case len(op.Group) > MaxGroup || len(op.Emptied) > MaxGroup:
		return job.Errorf(job.Invalid, "a group has a name of %d bytes: want 1 to %d", max(len(op.Group), len(op.Emptied)), MaxGroup)
	case op.Emptied != "" && op.Emptied == op.Group:
		return job.Errorf(job.Invalid, "the posting waits for the group %.80q and is of it: want another one", op.Group)
	}
	return nil
}
