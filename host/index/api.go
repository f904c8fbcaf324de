// Package index keeps the open jobs of one board in claim order, in memory, fed
// by what the board's driver says. It finds; the store decides: what it offers
// is a hint until a claim was granted.
package index

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Entry is an open job as the index is told of it. Labels, Name and Status are
// kept; the caller does not change them afterwards.
type Entry struct {
	ID                job.ID
	Name              string
	Priority          job.Priority // the class that counts, a changed one included
	OperationPriority int32
	Score             int64 // of the board's ordering policies; higher first, 0 without
	Labels            []job.Label
	CreatedAt         time.Time
	ModifiedAt        time.Time
	Sequence          uint64
	MaxAttempts       int32
	Attempt           int32
	Status            []byte // the board's mutable record, opaque here; nil while it is empty
	Extra             []byte // what the board wants to have at hand besides, opaque; usually nil

	Version   uint64
	Position  driver.Position
	NotBefore time.Time // zero: at once
	Held      bool

	Claim *Claim // nil: unclaimed
}

// Claim is what the index knows of who holds a job.
type Claim struct {
	Owner    string
	Token    job.Token
	Foreign  bool
	NoExpiry bool
	Ends     time.Time // when the lease ends, with this process's monotonic clock; a hint
	Since    time.Time
}

// Judge writes for each entry whether the class may have it. It may be called
// from several goroutines and must not call the index. An error leaves the
// entries unjudged: they are offered to nobody of the class until judged again.
type Judge func(ctx context.Context, entries []*Entry, allowed []bool) error

// Order sorts jobs: score (higher first), priority class, operation priority
// (smaller first), then oldest by (createdAt, sequence, id). It survives
// abandon and expiry, since none of these parts is changed by them.
type Order struct {
	Score             int64
	Priority          job.Priority
	OperationPriority int32
	CreatedAt         int64 // unix microseconds
	Sequence          uint64
	ID                job.ID
}

// Less reports whether a comes before b.
func (a Order) Less(b Order) bool {
	switch {
	case a.Score != b.Score:
		return a.Score > b.Score
	case a.Priority != b.Priority:
		return a.Priority < b.Priority
	case a.OperationPriority != b.OperationPriority:
		return a.OperationPriority < b.OperationPriority
	case a.CreatedAt != b.CreatedAt:
		return a.CreatedAt < b.CreatedAt
	case a.Sequence != b.Sequence:
		return a.Sequence < b.Sequence
	}
	return string(a.ID[:]) < string(b.ID[:])
}

// Order returns the entry's place.
func (e *Entry) Order() Order {
	return Order{
		Score: e.Score, Priority: e.Priority, OperationPriority: e.OperationPriority,
		CreatedAt: e.CreatedAt.UnixMicro(), Sequence: e.Sequence, ID: e.ID,
	}
}

// Counts are the sizes that the index knows without a walk.
type Counts struct {
	Ready         int64 // claimable now
	Delayed       int64 // unclaimed, waiting for their time or held
	Claimed       int64
	OldestReadyAt time.Time // creation of the oldest ready job; zero if there is none
}

// PageRequest asks for a part of the open jobs in claim order.
type PageRequest struct {
	After     *Order // nil: from the start
	Unclaimed bool
	Claimed   bool
	Limit     int
	// Visit bounds the entries looked at, so that one page cannot hold the lock
	// for long; 0 is 4096. A page that ends by it has More set and Last where it
	// stopped, and perhaps fewer entries than Limit.
	Visit int
	Match func(*Entry) bool // nil: all
}

// Page is what PageRequest gives. The entries are snapshots that stay as they
// are.
type Page struct {
	Entries []*Entry
	Last    Order
	More    bool
}

// Lapse names a claim whose lease seems to have run out.
type Lapse struct {
	ID    job.ID
	Claim Claim
}

// The index's methods, for its users' convenience in one place (see index.go):
//
//	New() *Index
//	Put(e *Entry) bool                         // insert or replace; ignored (false) if e.Position is not newer than what is known, removed jobs included
//	Remove(id, position) bool                  // likewise; remembers id until Forget passes the position
//	Touch(id, position, claim Claim) bool      // an extension: new lease end, same version
//	Forget(upTo driver.Position)               // no older news can come any more: drop the memory of removed jobs
//	Reset()/Sync(fn)                           // replace everything by a new snapshot without a moment of emptiness: jobs not put meanwhile are removed
//	Get(id) (*Entry, bool)                     // a snapshot
//	Class(ctx, key string, judge Judge) (*Class, error) // finds or builds a worker class; at most MaxClasses, least used out; built in slices off the lock
//	Take(class *Class, n int) []*Entry         // the best n ready ones, reserved for the caller: offered to nobody else until Put/Remove/Return
//	TakeIDs(ids []job.ID)...                    // not needed: a claim by uuid goes to the store directly
//	Return(ids ...job.ID)                      // gives reservations back unchanged
//	Waiter(class) *Waiter                      // w.C is signalled when a job of the class became ready; FIFO; one job wakes one waiter; w.Close passes an unused signal on
//	Left(ctx, ids) error                       // blocks until none of ids is open
//	Changed() <-chan struct{}                  // closed at the next change (for listing waits)
//	Page(PageRequest) Page
//	Rank(id, class) (int64, bool)              // ready jobs of the class before it
//	Count() Counts
//	Tick(now time.Time) []Lapse                // moves jobs whose time has come to ready, returns lapsed claims (each once per lease end; Again(id, at) asks for another look)
//	Next() (time.Time, bool)                   // when the next Tick is due;  DueSooner() <-chan struct{} is signalled when that moved closer
