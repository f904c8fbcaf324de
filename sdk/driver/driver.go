// Package driver is the contract between boardd and the store that keeps its
// boards. A Driver makes each transition of a job atomic and durable and says
// what changed; it never interprets a job beyond what its store needs. Leases,
// attempts, order, policies and tenants are decided above it.
//
// This package says what a driver must do; package drivertest tests whether it
// does.
package driver

import (
	"context"
	"iter"
	"log/slog"

	"github.com/boardd/boardd/sdk/job"
)

// A Program is everything that a driver's main serves: what it is, and how to
// open a store with a configuration that passed Info.Config.
type Program struct {
	Info Info
	Open func(ctx context.Context, c Config) (Driver, error)

	// Migrate makes and upgrades what the store needs before it can be opened, such as
	// tables, whatever the settings say of when Open does so. With dry it changes nothing,
	// and says what it would do. nil: the store needs nothing, and Open is enough.
	Migrate func(ctx context.Context, c Config, dry bool) (Migration, error)
}

// Wrapped returns the program with each store that it opens given to wrap first, as for a test
// that has a store count its calls, or fail.
func (p Program) Wrapped(wrap func(Driver) Driver) Program {
	open := p.Open
	p.Open = func(ctx context.Context, c Config) (Driver, error) {
		d, err := open(ctx, c)
		if err != nil {
			return nil, err
		}
		return wrap(d), nil
	}
	return p
}

// Info says what a driver is, before any store is opened.
type Info struct {
	Name    string // as in `driver = "..."`
	Version string // semantic version, for people
	Summary string // one line, for people
	Config  Schema // the settings of a backend
	Board   Schema // the settings of one board on it

	Logbooks bool // it can show TaskFlow's logbooks, see LogbookSpace
	OneHost  bool // a store is for one driver at a time: opening it again meanwhile is an error
	Wakes    bool // the driver is a Waker
}

// Config is what a driver is opened with.
type Config struct {
	Settings []byte // a JSON object that passed Info.Config
	DataDir  string // a folder for this backend alone, made before Open; empty if the host has none
	Logger   *slog.Logger
}

// A Driver keeps boards in a store. All methods may be called from many
// goroutines at once. A board must be opened before it is used, or everything
// but its documents is Precondition; its name is the host's and unique on this
// Driver.
//
// Every error is, or wraps, a *job.Error whose Kind says whether something
// changed: OutcomeUnknown says that the store did not tell, every other kind
// that nothing was changed. A driver never repeats a change whose outcome it
// does not know, unless it can prove that the repetition is harmless.
type Driver interface {
	// OpenBoard makes a board ready, and again after the store was away. Opening
	// an open board with other settings changes them. A board that is new to the
	// store is empty, and nothing need be written before its first change.
	OpenBoard(ctx context.Context, spec BoardSpec) (BoardStatus, error)

	// DropBoard removes everything that this driver keeps for a board, other
	// programs' records on a shared board excepted. A board that does not exist
	// is dropped already.
	DropBoard(ctx context.Context, board string) error

	// Apply carries out each op atomically by itself and answers each, in order:
	// always len(ops) results. Before a result says that a change was made, the
	// change is as durable as BoardStatus.Durability declares. The caller never
	// has two ops for one job under way, in one call or in several, so that a
	// driver may run them in any order and side by side. Other hosts of the same
	// store may, and each op is atomic all the same: of many claims of one job at
	// once exactly one is granted.
	//
	// When ctx ends, an op that was not begun is Interrupted. One that was begun is
	// finished, or answered OutcomeUnknown.
	//
	// An op that exceeds BoardStatus.Capabilities or makes no sense on any board
	// is Invalid, with a message that says what would be right. Op.Check finds it.
	Apply(ctx context.Context, board string, ops []Op) []Result

	// Read returns the named jobs as they stand, in the order asked for, with
	// the parts asked for. A job that is not known has State Unknown; one that
	// left only a tombstone or a final record has State Complete. Each record
	// has its ID.
	Read(ctx context.Context, board string, ids []job.ID, parts Parts) ([]Record, error)

	// Scan streams the jobs of one set, in pages of a size that the driver
	// chooses. See ScanRequest. Breaking out of the loop ends the scan; an error
	// ends it too. There is at least one page, or an error.
	Scan(ctx context.Context, board string, req ScanRequest) iter.Seq2[Page, error]

	// Watch streams what changed after a position until ctx ends (its last error is
	// then Interrupted), the board is dropped, or the store is lost. See Changes.
	Watch(ctx context.Context, board string, after Position) iter.Seq2[Changes, error]

	// Count returns how many records of each sort a board has. It must not cost
	// more on a larger board than the store can bear once a second.
	Count(ctx context.Context, board string) (Counts, error)

	// Documents returns the store's small versioned records. It is never nil.
	Documents() Documents

	// Health returns nil when the store answers. It changes nothing. QuotaExceeded
	// says that the store answers and is full: what makes a board larger is
	// refused, and all else goes on.
	Health(ctx context.Context) error

	// Close lets what is under way finish, releases the store and waits for
	// everything that Open started. No other method is called after it.
	Close() error
}

// Position is a point in a board's history: its commit counter, or the store's
// transaction number. It grows with every change of the board and names one
// change of one job; 0 is before the first. It means the same on every host of
// the board.
type Position uint64

// Each implements Apply by calling one for each op in turn, for a driver whose
// store cannot take a batch.
func Each(ctx context.Context, ops []Op, one func(context.Context, *Op) Result) []Result {
	results := make([]Result, len(ops))
	for i := range ops {
		if err := ctx.Err(); err != nil {
			results[i] = Failed(&job.Error{Kind: job.Interrupted, Err: err})
			continue
		}
		results[i] = one(ctx, &ops[i])
	}
	return results
}
