package driver

import (
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Import makes a Post write a job as another store kept it: with its age and, by Then, in
// the trash or ended. All that holds of a Post holds, except that no limit keeps the job
// off, though it counts. So an import that comes again finds its job and changes nothing.
// Sequences, and the places of trashed and ended jobs in a scan, are given in the order of
// the imports. Ending.Keep counts from now, the window of a tombstone from EndedAt or from
// now, as the store likes. Only for stores with Capabilities.Imports.
type Import struct {
	CreatedAt time.Time // of the posting; kept to the microsecond at least

	// Then is the Trash or the Remove that the job went through, carried out just after
	// the Post and only together with it; nil: the job is open. A Precondition of
	// HeldByToken or Lapsed is not looked at: Token is that of a claim in the other store,
	// and a retry of the ending is answered. Everything else of the job is the Post's.
	Then *Op

	// EndedAt, with Then, is when that was; kept to the microsecond at least.
	EndedAt time.Time
}

func (op *Op) checkImport(c Capabilities) error {
	i := op.Import
	switch {
	case i == nil:
		return nil
	case !c.Imports:
		return job.Errorf(job.Invalid, "this store takes in no jobs of other stores: want a post without an import")
	case op.Replaces != nil || op.Inbox != 0:
		return job.Errorf(job.Invalid, "an import replaces no job, and is about no posting of an inbox")
	case i.CreatedAt.IsZero():
		return job.Errorf(job.Invalid, "the import does not say when the job was posted")
	case i.Then == nil:
		return nil
	case i.EndedAt.IsZero():
		return job.Errorf(job.Invalid, "the import does not say when the job ended, or was put into the trash")
	}
	then := i.Then
	switch {
	case then.Kind != Trash && then.Kind != Remove:
		return job.Errorf(job.Invalid, "the imported job went through an op of kind %d: want %d or %d", then.Kind, Trash, Remove)
	case then.Job != op.Posting.ID:
		return job.Errorf(job.Invalid, "the import is of job %v and says how %v ended: want the same job", op.Posting.ID, then.Job)
	case then.Precondition != Whatever && !then.Precondition.ByToken():
		return job.Errorf(job.Invalid, "the imported job ended by precondition %d: want a token or none", then.Precondition)
	case then.Version != 0 || then.Status != nil || then.Attach != nil || then.Hold != nil:
		return job.Errorf(job.Invalid, "what the imported job went through changes more than where it stands: want that in the post")
	}
	return then.Check(c)
}
