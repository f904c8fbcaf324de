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
//
// With a Move it also lets an Update, a Trash, a Restore, a Purge and a Tally that closes a group
// through on the board that receives, so that what was imported follows what becomes of it in the
// other store. These are done as ever; an Update may have a Then, which is carried out just after
// it and only together with it, and is AlreadyClaimed where somebody holds the job, lapsed or not.
type Import struct {
	CreatedAt time.Time // of the posting; kept to the microsecond at least. Zero but for a Post

	// Then is the Trash, the Remove or the Claim that the job went through, carried out just
	// after the Post or the Update and only together with it; nil: the job is open, and nobody
	// holds it. A Precondition of HeldByToken or Lapsed is not looked at: Token is that of a
	// claim in the other store, and a retry of the ending is answered. Everything else of the
	// job is the Post's or the Update's. A Claim has no ClaimSpec: Owner holds the job by Token, from now on for Lease,
	// or with NoExpiry, and Limits are counted while the claim stands, whatever their Max. It
	// is only for imports of a Move, and Precondition where Token is not of the board's
	// generation.
	Then *Op

	// EndedAt, with Then, is when that was, for a Claim when it was made; kept to the
	// microsecond at least.
	EndedAt time.Time

	// Move, if not zero, is the move that the import belongs to: it is done on a board that
	// receives for that move (see MoveStep), and is Precondition on one that does not. Only
	// for stores with Capabilities.Moves.
	Move [16]byte
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
	case i.Move != [16]byte{} && !c.Moves:
		return job.Errorf(job.Invalid, "boards do not move here: want an import that belongs to no move")
	case i.CreatedAt.IsZero():
		return job.Errorf(job.Invalid, "the import does not say when the job was posted")
	}
	return op.checkThen(op.Posting.ID, c)
}

// checkFollowing looks at an op that has what was imported follow the other store.
func (op *Op) checkFollowing(c Capabilities) error {
	i := op.Import
	switch {
	case op.Kind == Post || i == nil:
		return nil
	case op.Kind != Update && op.Kind != Trash && op.Kind != Restore && op.Kind != Purge && op.Kind != Tally:
		return job.Errorf(job.Invalid, "an op of kind %d has an import: want %d, %d, %d, %d, %d or %d", op.Kind, Post, Update, Trash, Restore, Purge, Tally)
	case !c.Moves:
		return job.Errorf(job.Invalid, "boards do not move here: want an op without an import")
	case i.Move == [16]byte{} || !i.CreatedAt.IsZero():
		return job.Errorf(job.Invalid, "the import of a job that is there names no move, or when it was posted: want a move alone")
	case op.Precondition != Whatever || op.Version != 0:
		return job.Errorf(job.Invalid, "an imported job follows the other store whoever holds it: want no precondition and no version")
	case i.Then != nil && op.Kind != Update:
		return job.Errorf(job.Invalid, "an op of kind %d says what the job went through: want that of %d or %d alone", op.Kind, Post, Update)
	}
	return op.checkThen(op.Job, c)
}

// checkThen looks at what an imported job went through.
func (op *Op) checkThen(id job.ID, c Capabilities) error {
	i, then := op.Import, op.Import.Then
	switch {
	case then == nil:
		return nil
	case i.EndedAt.IsZero():
		return job.Errorf(job.Invalid, "the import does not say when the job ended, or was put into the trash")
	case then.Kind != Trash && then.Kind != Remove && then.Kind != Claim:
		return job.Errorf(job.Invalid, "the imported job went through an op of kind %d: want %d, %d or %d", then.Kind, Trash, Remove, Claim)
	case then.Job != id:
		return job.Errorf(job.Invalid, "the import is of job %v and says how %v ended: want the same job", id, then.Job)
	case then.Precondition != Whatever && !then.Precondition.ByToken():
		return job.Errorf(job.Invalid, "the imported job ended by precondition %d: want a token or none", then.Precondition)
	case then.Version != 0 || then.Status != nil || then.Attach != nil || then.Hold != nil:
		return job.Errorf(job.Invalid, "what the imported job went through changes more than where it stands: want that in the post")
	}
	if then.Kind == Claim {
		if i.Move == [16]byte{} {
			return job.Errorf(job.Invalid, "a claim of another store comes along with a move alone: want a job that nobody holds")
		}
		return then.checkImportedClaim(c)
	}
	return then.Check(c)
}

// checkImportedClaim looks at a claim that was made in another store.
func (op *Op) checkImportedClaim(c Capabilities) error {
	switch {
	case op.Claim != nil || op.Request != [16]byte{}:
		return job.Errorf(job.Invalid, "the claim was made in another store: want no candidates, and no request")
	case op.Owner == "" || op.Token.IsZero():
		return job.Errorf(job.Invalid, "the claim of the other store has no owner or no token")
	case op.Lease < job.MinLease && !op.NoExpiry:
		return job.Errorf(job.Invalid, "the claim's lease is %v: want at least %v, or no expiry", op.Lease, job.MinLease)
	case len(op.Reason) > job.MaxReason:
		return tooLarge("the reason", len(op.Reason), job.MaxReason)
	}
	return checkLimits(op.Limits, c)
}
