// Package transition is the state machine of the driver contract. For each op it
// says what the op needs, what it changes, and how it is answered, the same for
// every store. It reads no clock, keeps no state, and on the usual paths allocates
// nothing.
//
// A store goes through these steps once for each op, within the transaction, script
// or lock that makes the change atomic:
//
//   - First it calls Op.Check, and refuses what it alone cannot take.
//   - It reads the job into Facts, and the stamp under KeyOf into Facts.Stamp.
//   - It calls Decide, or Candidate for each candidate of a claim. With Plan.Do zero
//     there is nothing to write, and the Result or the Skipped is the answer. If
//     Plan.Reread is set, it calls again with facts that are not cached.
//   - It calls Room, since limits are checked last. If that names a key, the answer
//     is that of Full, and nothing is written.
//   - It writes the Plan in one step: job, claim, counters, stamp and tombstone.
//     What is not in the Plan is in the op: Op.Posting, and Event and Reason for the
//     watchers.
//   - It calls Finish with the version, position, epoch and time of the change, and
//     gets the answer. A store that learns these from its commit calls it after that.
//
// A Tally is about no job: the store calls Count for it and makes the moves.
//
// The store itself chooses the candidates to look at and stops when a claim has
// enough, keeps the answer of a claim that is to be remembered (KeyOf returns its
// key), removes stamps, tombstones and final records that are too old or too many,
// and tells its watchers. A Plan does not say how records are laid out: a store may
// use one record as a job's tombstone and as the stamp of the op that ended it.
package transition

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Facts are what the store knows about one job when an op comes. FactsOf fills in
// most of them from a record.
type Facts struct {
	Now        time.Time // on the store's wall clock
	Generation uint64    // of the board

	// State says where the job stands. It stays Claimed after the lease has run out,
	// until an op ends the claim. It is Unknown of a job that the store does not know,
	// and of an ended one whose tombstone and final record are both past their time.
	State    job.State
	Version  uint64
	Position driver.Position // of the last change
	Digest   [16]byte        // of its posting; zero where another program made it

	// Holder says who claims the job, if it is Claimed. Remaining is counted on the
	// store's clock for leases; Token is zero for another program's claim. Owner may
	// be left out if the op names no owner to compare it with.
	Holder driver.Holder

	Held      bool      // until an Update says otherwise
	NotBefore time.Time // zero: at once

	EndedBy job.Token // of a Complete job: the token by which it was ended; zero: by none

	// Stamp is the one kept under KeyOf(op), if it is still within the board's window;
	// zero: there is none.
	Stamp Stamp

	// Leaseless says that another program's claims have no lease on this store, and
	// cannot be given one.
	Leaseless bool

	// Cached says that the job may have changed since these were read. A plan made
	// of them is good only if the store finds at the commit that it has not. Neither a
	// refusal is made of them, nor an answer that says how the job stands: see
	// Plan.Reread.
	Cached bool

	// Job is called only where an answer shows the job; nil: nothing is known of it.
	Job Job
}

// A Job returns its record without the larger parts, or nil if nothing is known of
// it. It is an interface so that a store need not make a closure for each op.
type Job interface{ Show() *driver.Record }

// shown is a Job whose record was read already.
type shown struct{ *driver.Record }

func (s shown) Show() *driver.Record { return s.Record }

// FactsOf makes Facts of a record, of which all but the larger parts has been
// read; nil or State Unknown: nothing is known of the job. It leaves out EndedBy,
// Stamp, Generation, Leaseless and Cached.
func FactsOf(r *driver.Record, now time.Time) Facts {
	f := Facts{Now: now}
	if r == nil || r.State == job.Unknown {
		return f
	}
	f.Job = shown{r}
	f.State, f.Version, f.Position, f.Digest = r.State, r.Version, r.Position, r.Posting.Digest
	f.Held, f.NotBefore = r.Held, r.NotBefore
	if r.Holder != nil {
		f.State, f.Holder = job.Claimed, *r.Holder
	}
	return f
}

// claimed reports whether somebody holds the job, even if the lease has run out.
func (f *Facts) claimed() bool { return f.State == job.Claimed }

// live reports whether somebody holds the job, and the lease has not run out.
func (f *Facts) live() bool {
	return f.State == job.Claimed && (f.Holder.NoExpiry || f.Holder.Remaining > 0)
}

// waits reports whether the job is held back.
func (f *Facts) waits() bool { return f.Held || f.Now.Before(f.NotBefore) }

// record is the job as answers show it.
func (f *Facts) record() *driver.Record {
	if f.Job == nil {
		return nil
	}
	return f.Job.Show()
}
