package driver

import "time"

// BoardSpec says how a board is to be kept. Window and MaxTombstones bound what
// the store remembers for retries: endings, ops by their Request, and answers to
// claims. Each of these counts as one tombstone.
type BoardSpec struct {
	Name     string // the host's name for it; any text up to 200 bytes
	Settings []byte // a JSON object that passed Info.Board

	Window        time.Duration // how long tombstones and remembered answers are kept
	MaxTombstones int64         // at most so many; the oldest go first. 0: the default
	MaxFinals     int64         // final records, likewise; 0: no limit. The tombstone of a dropped one stays
	MaxFinalBytes int64         // likewise, in bytes of everything kept with them; 0: no limit
	Observe       bool          // write nothing to the store, documents included: every change is Precondition

	// Witness is the BoardStatus.Witness that this host was given last, nil if it
	// never saw the board. The host writes it down before it passes on a result that
	// it was given since. With it a driver finds out whether the store was rolled
	// back. BoardStatus.Loss reports a loss if the witness is from another store,
	// from a later state than the store's, or from a lower generation than the
	// board has now. A lower generation means that a loss was found before, and
	// its report did not reach this host.
	Witness []byte

	// Seen is the highest Position of a Result that this host was given for the
	// board, 0 if there was none. The host writes it down before it passes the
	// result on, but for one that it is given while it opens the board, which it
	// writes down with the Witness of that. So it is usually newer than Witness. If
	// the board's position is lower, the store lost changes that it had acknowledged,
	// and Loss says so as for Witness.
	Seen Position
}

// Limits on BoardSpec.
const (
	DefaultWindow        = time.Hour
	DefaultMaxTombstones = 1_000_000
	MaxBoardName         = 200
)

// Durability says what an acknowledged change survives.
type Durability string

// The durabilities, from least to most.
const (
	Volatile   Durability = "memory"     // nothing
	Delayed    Durability = "delayed"    // a restart of the store; a crash loses the last moments
	Durable    Durability = "fsync"      // power loss of one machine
	Replicated Durability = "replicated" // loss of a minority of machines
)

// BoardStatus is what a driver says of an opened board.
type BoardStatus struct {
	Generation   uint64   // at least 1; higher after every loss of acknowledged changes
	Position     Position // now
	Durability   Durability
	Capabilities Capabilities
	Window       time.Duration // how far back tombstones really go
	MaxFinals    int64         // how many final records are really kept at most; 0: as many as was asked
	Witness      []byte        // what the host should remember; see BoardSpec.Witness
	Loss         string        // not empty: acknowledged changes were or may have been lost; it says what is known
}

// Capabilities says what a store can do on one board. What is missing the host
// does itself, or refuses with a clear message.
type Capabilities struct {
	Encodings     []string // "json", "msgpack": what Posting.Details may be
	MaxDetails    int      // bytes of details
	MaxRecord     int      // bytes of Extra, Status, Final and of one attachment, each
	MaxBatch      int      // ops that one Apply should carry
	InFlight      int      // batches that should be under way at once
	MaxCandidates int      // candidates of one claim
	MaxJobs       int64    // open jobs; 0: bounded only by the machine
	Limits        bool     // Op.Limits and Candidate.Limits are checked in the same step
	Attachments   bool     // attached records are kept
	Shared        bool     // other programs write to this board
	ByteExact     bool     // details come back byte for byte
	AnswersClose  bool     // an answer to a claim that was given again takes no more (ClaimSpec.More)
	Timeouts      bool     // Candidate.Most and Op.Most are kept to
	Keys          bool     // Op.Keys are taken in the same step
	Replaces      bool     // so is Op.Replaces carried out
	Imports       bool     // and Op.Import
	Groups        bool     // Op.Group is counted in the same step, see Group
	Rates         bool     // Candidate.Rates are checked in the same step
	Endings       bool     // a Trash with an Ending is another ending than one without
	Inbox         bool     // others leave postings in the store, see InboxPostings; CapabilityAll is without
	Moves         bool     // the driver is a Mover; CapabilityAll is without
	Empties       bool     // MoveBoard takes Empty; CapabilityAll is without
	Alone         bool     // of a Shared board: nobody but boardd is said to write to this one, so that it may be closed
}

// CapabilityAll returns the capabilities of a store without restrictions.
func CapabilityAll() Capabilities {
	return Capabilities{
		Encodings: []string{"json", "msgpack"}, MaxDetails: 4 << 20, MaxRecord: 1 << 20,
		MaxBatch: 128, InFlight: 2, MaxCandidates: 256, Limits: true, Attachments: true, ByteExact: true,
		AnswersClose: true, Timeouts: true, Keys: true, Replaces: true, Imports: true, Groups: true, Rates: true, Endings: true,
	}
}
