package job

import "time"

// Job is a job as people see it.
type Job struct {
	ID       ID
	Name     string
	State    State
	Outcome  Outcome
	Priority Priority

	Details    []byte // JSON text; nil where it was not asked for or is not JSON
	RawDetails *Raw   // where the details are kept in another encoding

	Labels   []Label // sorted by key, no key twice
	Book     Book
	Sequence uint64

	CreatedAt  time.Time
	ModifiedAt time.Time
	StartedAt  time.Time // of the first operation, or the first claim of a job without; zero before
	EndedAt    time.Time // zero before

	Owner          string        // who claims it; empty if nobody
	ClaimedAt      time.Time     // of the claim that stands, or by which the job ended; zero: there is none, or it is not known
	ClaimLease     time.Duration // that was granted to this claim at first; 0: none, or it is not known
	LeaseExpiresAt time.Time     // zero if nobody claims it or the claim has no lease
	Attempt        int32         // claims so far that count against MaxAttempts, this one included
	MaxAttempts    int32         // 0: the board's
	Timeout        time.Duration // for which one claim may stand; 0: for any time
	Unique         Unique        // without a Key: it has none
	Batch          string        // the batch that counts it; empty: none
	NotBefore      time.Time     // zero: at once
	Held           bool          // waits for something else than a time
	LastReason     string        // why the last claim ended without the job being done
	Reasons        []string      // of every lost or abandoned claim, oldest first, the last 20
	Attempts       []Attempt     // these claims
	RestoredAt     time.Time     // when it was put back from the trash for the last time; zero: never, or it is not known

	Operations        []Operation // nil where they were not asked for
	OperationStatus   OperationStatus
	OperationPriority int32          // of the most urgent operation that is not finished
	After             []Prerequisite // what it waits for, or waited

	LogSerial int64      // of the last entry of its log; 0: there is none
	Log       []LogEntry // what is kept of it; nil where it was not asked for

	AsItWas *AsItWas // the job whole; nil where it was not asked for
}

// AsItWasFormat is the format of the records that this version writes, and the only one that
// it reads.
const AsItWasFormat = 1

// AsItWas is a job as its board keeps it, from which a board makes it again.
type AsItWas struct {
	Format int32  // of Record
	Record []byte // for boards alone
	SHA256 string // of Record, in hexadecimal digits
}

// Attempt is a claim that ended without the job being done. Its times are by the
// clock of the host that saw them.
type Attempt struct {
	Owner  string        // empty: not known
	Begun  time.Time     // zero: not known
	Ended  time.Time     // likewise
	Lease  time.Duration // that was granted at first; 0: none, or not known
	Reason string        // why it ended
}

// Raw is details in an encoding of the store.
type Raw struct {
	Encoding Encoding
	Data     []byte
}

// Posting is what a poster gives.
type Posting struct {
	ID          ID // zero: the board makes one
	Name        string
	Priority    Priority
	Details     []byte // a JSON object; nil: {}
	Raw         *Raw   // instead of Details
	Labels      []Label
	Book        Book
	NotBefore   time.Time
	MaxAttempts int32
	Timeout     time.Duration // for which one claim may stand; 0: for any time
	Unique      Unique
	Batch       string // the name of the batch that counts it; empty: none
	Operations  []NewOperation
	After       []Prerequisite
}

// Unique is a key that one job of a board has at a time.
type Unique struct {
	Key        string
	Window     time.Duration // for which the job has it from its post, whatever became of it; 0: while it is open
	OnConflict OnConflict    // of a posting
}

// OnConflict says what becomes of a posting whose key another job has.
type OnConflict uint8

// What becomes of it.
const (
	Keep    OnConflict = iota // the job that stands is the answer
	Replace                   // an unclaimed one is canceled for it
	Reject
)

// Claim says who holds a job and until when.
type Claim struct {
	ID             ID
	Owner          string
	Token          Token
	Lease          time.Duration // granted; 0: the claim does not expire
	LeaseExpiresAt time.Time
	Attempt        int32
	Ahead          bool // given before its worker could begin; until it has, its end uses up no attempt
	Job            *Job
}

// Event reports one change to a board.
type Event struct {
	Type   EventType
	Job    *Job // without details; nil for Heartbeat and Resync
	At     time.Time
	Reason string
	Cursor string // where to go on after this event

	CancelRequested bool // the job's worker is asked to stop
	Exhausted       bool // it went to the trash because its attempts ran out
}
