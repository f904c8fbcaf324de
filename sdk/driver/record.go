package driver

import (
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Posting is what was posted. It never changes.
type Posting struct {
	ID       job.ID
	Name     string
	Priority job.Priority
	Book     job.Book
	Encoding job.Encoding // of Details; refused as Invalid if the store does not keep it
	Details  []byte       // as posted; nil where Parts did not ask for them
	Extra    []byte       // the host's own fields, opaque
	Digest   [16]byte     // of everything above; equal postings have equal digests

	CreatedAt time.Time // set by the store
	Sequence  uint64    // set by the store; grows from post to post of a board
}

// Parts says which larger parts of a job are wanted.
type Parts uint8

// The parts. A record without any has everything but these.
const (
	Details   Parts = 1 << iota // Posting.Details
	Attached                    // Record.Attached, all of them
	FinalData                   // Record.Final
)

// Record is a job as it stands in the store.
type Record struct {
	Posting Posting
	State   job.State

	Status   []byte   // the host's mutable record, opaque
	Version  uint64   // raised by every change but Extend; never 0
	Position Position // of the last change

	Holder    *Holder   // who claims it; nil if nobody
	NotBefore time.Time // zero: at once
	Held      bool      // held back until an Update says otherwise

	ModifiedAt time.Time
	EndedAt    time.Time   // for Complete and Trashed
	Outcome    job.Outcome // for Complete
	EndedBy    job.Token   // for Complete, with FinalData: the token that ended it; zero: none did, or it is not known. Stores with Capabilities.Moves know it
	Final      []byte      // for Complete, where a final record is kept
	Attached   []Attachment

	// Corrupt says, where State is Unknown, why the record under the job's id cannot
	// be read as a job; empty: there is no such record.
	Corrupt string
}

// Holder says who claims a job.
type Holder struct {
	Owner     string
	Token     job.Token     // zero: claimed by another program (Foreign)
	Foreign   bool          // claimed by a program that is not boardd
	NoExpiry  bool          // the claim has no lease
	Remaining time.Duration // of the lease when the record was read; at most 0: it ran out
	Since     time.Time     // when the claim was made, where known
}

// Set names the jobs that a scan goes through.
type Set uint8

// The sets.
const (
	OpenJobs    Set = iota // unclaimed and claimed, in any order
	TrashedJobs            // by the time they were trashed
	EndedJobs              // tombstones and final records, by the time they ended

	// CorruptJobs are the records among the open jobs that cannot be read, as far as
	// known: at most MaxBad in Page.Bad, and no Records.
	CorruptJobs

	// InboxPostings are what others have left in the store to be posted on the board, and
	// what is neither posted nor refused: only what can be seen committed, in the order in
	// which this driver came to see it. What was committed before the board was opened is
	// there as soon as it is open. A record has only the Posting: its ID, as Sequence its
	// number (see Op.Inbox), and as Details a JSON object that the host understands. Only for
	// stores with Capabilities.Inbox.
	InboxPostings
)

// ScanRequest asks for a scan.
type ScanRequest struct {
	Set         Set
	Parts       Parts
	After       string // go on after the page whose Next this is; empty: from the start
	NewestFirst bool   // for TrashedJobs and EndedJobs
	Limit       int    // stop after this many records, with Next if there may be more; 0: no limit
}

// Page is a part of a scan. A job may be in two pages if it changes meanwhile;
// a job that is in the set during the whole scan is in at least one.
type Page struct {
	Records []Record
	Bad     []BadRecord // records that cannot be read; they hide no other
	Next    string      // where to go on; empty on the last page

	// Position is, on each page of a scan of OpenJobs, the point from which a
	// Watch leaves no gap: nothing that was acknowledged after the first page
	// was begun is missing from the pages and the changes after Position. A scan
	// that goes on from a Next keeps the point of the scan that it continues.
	Position Position
}

// BadRecord is something in the store that cannot be read as a job. It is left
// as it is.
type BadRecord struct {
	Key     string // where it lies, in the store's own words
	Problem string // what is wrong with it
	Job     job.ID // whose it is; zero: it cannot be told
}

// MaxBad is how many bad records a scan of CorruptJobs names.
const MaxBad = 1000

// Changes is a step of a Watch. Nothing that was acknowledged after the watch's
// position is left out: every change that an op of this contract made is reported,
// except that an Extend by another host need not be. Changes by other programs may
// be merged. For each job the last change shows its present state. A change may
// come twice; that does no harm.
//
// Changes come in the order of their positions, which is the order in which the
// store committed them, in a step and from step to step. A change is reported
// only when no later one can get a position before it: so a watcher may go on
// from the position of each change, on any host, and misses nothing. A number that
// is given out before the commit, such as that of an SQL sequence, cannot be the
// position.
type Changes struct {
	List     []Change
	Position Position // everything up to here has been reported

	// Resync says that the changes after the asked position are no longer known,
	// or that the board has never come that far: the watcher must scan again. The
	// stream goes on from Position.
	Resync bool

	// Inbox says that there may be InboxPostings that the watcher has not been told of, and
	// comes at the start of the stream if there are any: who hears it scans them.
	Inbox bool
}

// Change is one change of one job.
type Change struct {
	Event    job.EventType // as the op said; ForeignChange if another program made it
	Job      job.ID
	Position Position
	At       time.Time
	Reason   string
	Owner    string // who held or holds the job, where that is known

	// Record shows the job after the change, without details. It is always set,
	// with the whole posting, for a job that came onto the board (posted, restored,
	// foreign). For others it may be Sparse, since the watcher has the posting
	// already; a watcher that has not may Read it. A store may show a later record, but not
	// where a job went to the trash: its status then says why.
	Record *Record
	Sparse bool // Record.Posting has only its ID
}

// Counts says how many records a board has.
type Counts struct {
	Open       int64 // unclaimed and claimed
	Claimed    int64 // of these, claimed
	Trashed    int64
	Ended      int64            // final records and tombstones that Read shows as Complete
	Tombstones int64            // see BoardSpec
	Finals     int64            // final records, likewise
	FinalBytes int64            // and everything kept with them
	Bad        int64            // records that cannot be read, as far as known
	Limits     map[string]int64 // the count of each limit's key, where that is kept
}
