package driver

import (
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// OpKind says which transition an Op is.
//
// A job that is not where the op needs it (in the trash instead of on the
// board, or the other way round) is NotFound, and Result.Record shows where it
// stands. Conditions are looked at in this order: that the op was done before,
// Precondition, where the job stands, Version, limits.
type OpKind uint8

// The transitions. Each names the state that it needs and the one that it
// leaves. "Ends the claim" means that its token is never valid again.
const (
	// Post puts Op.Posting on the board. It needs that no open or trashed job
	// and no tombstone or final record has its ID. Where one has: with an equal
	// Posting.Digest the op is done and Repeated, and Result.Record shows that
	// job; with another digest it is AlreadyExists. Precondition and Version are
	// ignored.
	Post OpKind = iota + 1

	// Claim gives Op.Claim.Owner up to Count of the candidates, see ClaimSpec.
	Claim

	// Extend sets the lease of a claim anew, counted from now on the store's
	// clock: Op.Lease, or none with Op.NoExpiry. It does not raise the version.
	// Invalid with another Precondition than HeldByToken or HeldByOwner, and with
	// a status, an attached record or a hold.
	Extend

	// Update changes status, attached records and hold of a job on the board,
	// and nothing else. A hold of a claimed job counts from the claim's end.
	Update

	// Release ends the claim and leaves the job unclaimed (abandon, expiry,
	// release by a person). Without a claim it is NotClaimed, whatever Precondition
	// is.
	Release

	// Remove ends the claim, if there is one, and takes the job off the board
	// for good (consume, cancel). Op.Ending says what is left.
	Remove

	// Trash ends the claim, if there is one, and puts the job in the trash
	// with everything that belongs to it. Limits of its post are no longer
	// counted; Restore counts them again, even above their Max. With an Op.Ending
	// it is what came of giving the claim up, and not the holder's wish.
	Trash

	// Restore puts a trashed job back on the board, unclaimed, in the place that
	// its posting and status give it. Its hold stays, if Op.Hold is nil.
	// Precondition must be Whatever.
	Restore

	// Purge takes a trashed job, or an ended one with its final record and its
	// tombstone, away for good: Read says Unknown, no scan shows it, posting the
	// uuid again is allowed. Retries of the purge and of the ops before it are
	// still answered. Precondition must be Whatever.
	Purge

	// Refuse takes the posting under Op.Inbox out of those that wait: it is never posted.
	// With an Op.Reason it is kept as refused, where people see it, else it is gone. Where
	// it does not wait the op is NotFound. It changes no job, so its Result has neither a
	// version nor a position; Op.Job is the posting's ID. Only for stores with
	// Capabilities.Inbox.
	Refuse

	// Tally answers with Result.Group how the jobs of Op.Group stand; of a group that nobody
	// has posted with nothing is counted. With Op.Close it closes the group, for good: every
	// later Post with it is Precondition, and a Restore is done all the same. With Op.Forget it
	// takes all counts away, and that the group is closed; while a job of it is on the board or
	// in the trash that is Precondition. Both may come twice. It changes no job, so its Result
	// has neither a version nor a position, and it names none. With Close it may have an
	// Import with a Move: a board that receives takes it. Only for stores with
	// Capabilities.Groups.
	Tally
)

// Precondition says what has to be true of a job's claim for an op to be done.
type Precondition uint8

// The preconditions on a claim.
const (
	// Whatever asks nothing.
	Whatever Precondition = iota

	// HeldByToken needs that the job is claimed with exactly Op.Token and that
	// the lease has not run out on the store's clock. Otherwise:
	//   - this token made the same ending (Kind, Precondition and Outcome) before:
	//     done and Repeated, whatever became of the job since
	//   - the job is on the board or in the trash, or this token took it off the
	//     board in another way: LeaseLost, with the present owner if there is one,
	//     and a message that says how this token ended its claim, where that is known
	//   - the job is not known, or was ended by somebody else: NotFound
	HeldByToken

	// HeldByOwner needs that the job is claimed by Op.Owner, by whichever token,
	// and that the lease has not run out. Held by another: NotOwner with that
	// owner. Held by nobody, or the lease ran out: NotClaimed. Not known or
	// ended: NotFound.
	HeldByOwner

	// Lapsed needs that the job is claimed with exactly Op.Token and that its
	// lease has run out on the store's clock. Not yet: Precondition, and
	// Result.Remaining says how long (0: the claim has no lease). Otherwise as
	// HeldByToken.
	Lapsed

	// Held needs that the job is claimed, by whomever, even by a lease that ran
	// out; if Op.Owner is not empty, by that owner, else NotOwner. Held by
	// nobody: NotClaimed. Not known or ended: NotFound.
	Held

	// Free needs that the job is not claimed, or that its lease has run out.
	// Otherwise AlreadyClaimed with the owner.
	Free
)

// Op is one transition of one job. The zero values of its optional fields
// change nothing.
//
// An op may come twice, when its answer was lost. Post is recognised by its
// digest; a Claim by its nonces; Release, Remove and Trash by their token if
// their Precondition names one; Extend not at all, since it does no harm twice.
// Every other op is recognised by Request, if that is not zero: repeated with the
// same Request within the board's window, it is done and Repeated, even if the
// job was changed since. Position, Version and At of a Repeated result are those
// of the change that was made; those of a Post are the job's present ones.
//
// A driver copies what it keeps of an op: the caller uses its buffers again
// when Apply has returned. Nobody writes to what a driver returns, so it may
// share memory with what the driver keeps.
type Op struct {
	Kind    OpKind
	Job     job.ID   // for all but Claim
	Request [16]byte // random, made by the host; a retry carries the same

	Precondition Precondition
	Token        job.Token // for HeldByToken and Lapsed
	Owner        string    // for HeldByOwner and Held
	Version      uint64    // if not 0, the job's version must be this, else Aborted

	Posting  *Posting      // for Post
	Claim    *ClaimSpec    // for Claim
	Lease    time.Duration // for Extend
	NoExpiry bool          // for Extend
	Most     time.Duration // for Extend: as Candidate.Most, and counted from when the claim was made
	Ending   *Ending       // for Remove; nil: Consumed, and a tombstone only. For Trash see Ending

	Status *[]byte      // if not nil, the new status record
	Attach []Attachment // attached records to write or to take away
	Hold   *Hold        // if not nil, when the job may next be claimed
	Limits []Limit      // for Post: counted while the job is on the board
	Keys   []Key        // for Post and Restore: taken in the same step, all or none

	// Replaces, for Post, is the Remove of another job that nobody holds (Precondition Free),
	// carried out just before and only together with the Post, to which that job's keys and
	// its share of limits are free. If it would be refused the Post is, with its kind and
	// Result.Taken. Only for stores with Capabilities.Replaces.
	Replaces *Op

	// Import, for Post, is what the job has behind it in the store that it comes from.
	Import *Import

	// Inbox, for Post and Refuse, is the number of the posting in the board's inbox that the
	// op is about; 0: of none. A Post takes it out of the inbox in the same step, also where
	// it is Repeated, and is NotFound if it does not wait there: so each is posted once,
	// however many hosts see it. Only for stores with Capabilities.Inbox.
	Inbox uint64

	// Group, for Post, is the name of the group that counts the job, see Group; for Tally of
	// the one that is asked for. Emptied, for Post, is a group that has to be closed, with no
	// job on the board, else the Post is Precondition; and of all Posts that wait for one group
	// one is done, and every other AlreadyExists. It is looked at after the keys. Only for
	// stores with Capabilities.Groups.
	Group, Emptied string
	Close, Forget  bool // for Tally

	Event  job.EventType // what watchers are told; the driver only carries it
	Reason string        // likewise; at most job.MaxReason bytes
}

// ClaimSpec asks for claims. The store goes through Candidates in order and
// claims those that are still free, until it has Count, so that several hosts may
// name the same candidates. Result.Skipped says why each of the others was passed
// over. A claim that gets nothing is done all the same: NoKind, without Claims.
// No job is named twice. Precondition, Version, Status, Attach and Hold of the Op
// are ignored.
type ClaimSpec struct {
	Candidates []Candidate
	Count      int
	Owner      string
	Lease      time.Duration // at least job.MinLease, unless NoExpiry
	NoExpiry   bool
	Parts      Parts // of the claimed jobs, to be returned with the claims

	// Remember keeps the answer under Op.Request for the board's window, unless it
	// has no claims. If an answer is kept already and More is not set, that answer
	// is given again, Repeated, and nothing is claimed: its Claims are as first
	// granted, whatever became of them, and their Records show the jobs as they are
	// now. With More, which is set by who got the claims of the kept answer, the new
	// claims are added to it, and only they are returned. An answer that was given
	// again takes no more, so that of several tries at the same time all tell the same:
	// More is given it once more as well, Repeated. A driver that does so says it with
	// Capabilities.AnswersClose; of another one nothing is asked with More.
	Remember bool
	More     bool
}

// Candidate is a job that a claim may take. It is free when it is on the board,
// not held back, and unclaimed or lapsed, and when Version is its version. A
// candidate that is claimed with this Nonce, and not lapsed, was claimed by an
// earlier try of this op, and counts as claimed: with the same token, and with
// the rest of its lease as Lease.
type Candidate struct {
	Job     job.ID
	Version uint64 // 0: any
	Nonce   [16]byte
	Status  *[]byte // if not nil, the status record that the claim writes
	Limits  []Limit // counted while the claim stands
	Rates   []Rate  // counted for the rest of their periods, whatever becomes of the claim

	// Most, if not 0, is how long the claim may stand: the lease is cut to it, and a claim
	// without expiry gets it as its lease. Extensions name it again. It is at least
	// job.MinLease, and only for stores with Capabilities.Timeouts.
	Most time.Duration
}

// Limit is a counter that a post raises while its job is on the board, and a
// claim while it stands. Its key does not begin with a zero byte. An op that would raise it above Max is QuotaExceeded,
// with the key as the message. A claim stands, even when its lease has run out,
// until an op ends it or another claim takes the job. Only for stores with
// Capabilities.Limits.
type Limit struct {
	Key    string
	Weight int64 // what is added; 0 counts as 1
	Max    int64
}

// A Rate bounds how many claims are granted with its key in one period. Periods begin at
// whole multiples of Per since 1970, on the store's clock. A claim counts in the period in
// which it is granted, also after it has ended; one that an earlier try of the op made does
// not count again. A candidate that would be one too many is QuotaExceeded, with the key as
// the message; rates are looked at after limits, and a claim that is not granted counts for
// none. When the clock is put back, the period that has begun goes on. Those who claim with
// one key name the same Per. Only for stores with Capabilities.Rates.
type Rate struct {
	Key string
	Per time.Duration // whole seconds, at most MaxPeriod
	Max int64         // at least 1
}

// Limits of rates.
const (
	MaxRateKey = 256 // bytes
	MaxPeriod  = 31 * 24 * time.Hour
)

// RatePrefix begins the names under which stores may keep the counts of rates beside keys.
const RatePrefix = "\x00rate\x00"

// A Key is a name that at most one job of a board has. A Post or Restore that would take a
// key which another job has is AlreadyExists, with Result.Taken; keys are looked at before
// limits. A job has its key while it is on the board, if the key is Open, and until the end
// of For, whatever became of it. The key of a job in the trash is free, but for the rest of
// For. A job that was off the board and comes back onto it without its key, by a Restore or
// a new Post, may have it or not: who wants to be sure takes it again. Only for stores with
// Capabilities.Keys.
type Key struct {
	Name string        // at most MaxKey bytes
	Open bool          // while the job is on the board
	For  time.Duration // from now, on the store's clock

	// Number, if not 0, has to be above the number with which the key was last taken, by
	// whichever job. The store keeps it as long as the board.
	Number uint64
}

// Limits of keys.
const (
	MaxKey  = 512 // bytes of a name
	MaxKeys = 4   // of one op
)

// Hold says when a job may next be claimed. The zero Hold means at once; any
// other has exactly one field set.
type Hold struct {
	Until  time.Time     // not before this time
	For    time.Duration // not before this long from now, on the store's clock
	Always bool          // not before an Update takes the hold away
}

// Attachment is a named record that is kept with a job and removed with it. Names
// are made of [a-z0-9/._-], at most 128 bytes, and sort as bytes.
type Attachment struct {
	Name   string
	Data   []byte
	Delete bool
}

// Ending says what Remove leaves behind. There is always a tombstone, for the
// board's window, which knows the posting's ID and digest, the outcome, and when
// it was. With Keep, there is a final record for that long as well, which also
// has the status; the job is Complete as long as one of the two is there.
//
// Of a Trash it has nothing but the Outcome Failed: the holder gave up the job's last attempt.
// That is another ending than a Trash without one, and changes nothing else. Only for stores with
// Capabilities.Endings.
type Ending struct {
	Outcome      job.Outcome
	Keep         time.Duration // 0: no final record
	Data         []byte        // the final record, opaque
	KeepPosting  bool          // the posting with its details stays readable with it
	KeepAttached bool          // and the attached records
}

// Result answers one Op.
type Result struct {
	// Kind is job.NoKind when the op was done, now or before (Repeated), and
	// OutcomeUnknown when the driver cannot tell. With every other kind nothing was
	// changed.
	Kind      job.Kind
	Message   string
	Owner     string        // who holds the job, where that is the reason
	Remaining time.Duration // for Lapsed refused: the rest of the lease
	Repeated  bool

	Position  Position      // of this change
	Version   uint64        // of the job, after it
	At        time.Time     // on the store's wall clock
	NotBefore time.Time     // of the job after it, if Op.Hold was not nil and the job is still there
	Lease     time.Duration // granted, for Extend

	// Record shows the job as it stands, without details: after a Post, and
	// where an op was refused because of the job's state or version.
	Record *Record

	// Taken is another job that is the reason, shown as Record as far as it is known: with
	// AlreadyExists it has the key that stands in Message; with any other kind it cannot be
	// replaced. Zero: no other job is.
	Taken job.ID

	Group *Group // for Tally

	Claims  []Claimed // for Claim, in the order of the candidates
	Skipped []Skipped // for Claim: candidates passed over, in order
}

// Claimed is one claim that was made.
type Claimed struct {
	Job      job.ID
	Token    job.Token
	Lease    time.Duration // granted; 0 with NoExpiry
	Version  uint64
	Position Position
	At       time.Time
	Record   *Record // with the parts asked for, where any were
}

// Skipped says why a candidate was not claimed: NotFound (not on the board; a job
// in the trash is not), AlreadyClaimed (with the owner), Aborted (another
// version), NotEligible (held back), QuotaExceeded (Message is the limit's key)
// or Corrupt. If several apply, the first in this order is given.
type Skipped struct {
	Job     job.ID
	Kind    job.Kind
	Owner   string
	Message string
	Record  *Record // as it stands, without details, where it is known
}

// Failed makes a Result of an error.
func Failed(err error) Result {
	r := Result{Kind: job.KindOf(err), Message: err.Error()}
	if e, ok := err.(*job.Error); ok { //nolint:errorlint // only the outermost message is for the caller
		r.Owner = e.Owner
	}
	return r
}

// Err returns the result as an error, or nil when the op was done.
func (r *Result) Err(op *Op) error {
	if r.Kind == job.NoKind {
		return nil
	}
	return &job.Error{Job: op.Job, Kind: r.Kind, Message: r.Message, Owner: r.Owner}
}
