// Package index keeps the open jobs of one board in claim order, in memory, fed
// by what the board's driver says. It finds; the store decides: what it offers
// is a hint until a claim was granted.
//
// Locks. Index.mu guards everything, for a bounded number of entries at a time, and is
// never held while a judge, a scorer, a ranker or the Match of a page is called. Whoever
// asks a judge has the turn of the class, or that of the pending verdicts; whoever asks
// the ranker has keys.asking. Index.mu is taken and let go with one of these turns held,
// and none of them is waited for with Index.mu held.
package index

import (
	"context"
	"time"

	"github.com/boardd/boardd/host/ranking"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Entry is an open job as the index is told of it. Labels, Name and Status are
// kept; the caller does not change them afterwards.
type Entry struct {
	ID                job.ID
	Name              string
	Priority          job.Priority // the present one, which may have been changed since the posting
	Held              bool
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
	Group             *Group // written by the Scorer where there is a Ranking; else nil

	Version   uint64
	Position  driver.Position
	NotBefore time.Time // zero: at once

	Claim *Claim // nil: unclaimed

	// Amends says that this is an entry that the index gave out, with what an op changed.
	// If the job is not in the index any more, the entry is dropped as no news, even if the
	// removal is not remembered any more.
	Amends bool
}

// A Group names the jobs that a Ranking ranks together: those with one key. It is
// shared, and never changed.
type Group struct {
	Key  string
	Most int64 // how many of them may run, as far as the Ranker says; 0: it does not
}

// key is what the entry is grouped by.
func (e *Entry) key() string {
	if e.Group == nil {
		return ""
	}
	return e.Group.Key
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
// The entries are only lent: neither they nor their Labels may be kept or
// changed.
type Judge func(ctx context.Context, entries []*Entry, allowed []bool) error

// Order is the place of a job among the others.
type Order = ranking.Order

// Order returns the entry's place.
func (e *Entry) Order() Order {
	return Order{
		Score: e.Score, Priority: e.Priority, OperationPriority: e.OperationPriority,
		CreatedAt: ranking.Created(e.CreatedAt), Sequence: e.Sequence, ID: e.ID,
	}
}

// Counts are the sizes that the index knows without a walk.
type Counts struct {
	Ready         int64 // claimable now
	Delayed       int64 // unclaimed, waiting for their time or held
	Claimed       int64
	OldestReadyAt time.Time // since when the ready job could be claimed that waits for the longest time; zero if there is none
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
	Match func(*Entry) bool // nil: all; called off the lock
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

// A Sighting is up to which change a job was known at some moment.
type Sighting struct {
	Known    bool
	Position driver.Position
}

// Sightings says how far each of the jobs is known.
func (ix *Index) Sightings(ids []job.ID) []Sighting {
	seen := make([]Sighting, len(ids))
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i, id := range ids {
		if h, ok := ix.ids.get(id); ok {
			seen[i] = Sighting{Known: true, Position: ix.rows.at(h).position}
		}
	}
	return seen
}

// Known reports whether a Put or Remove of the job with this position would change
// nothing, so that the caller need not prepare an entry.
func (ix *Index) Known(id job.ID, position driver.Position) bool {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	h, known := ix.ids.get(id)
	if !known {
		return ix.removed.knows(id, position)
	}
	r := ix.rows.at(h)
	return position <= r.position && (ix.sync == nil || !ix.sync.reset || r.seen == ix.syncs)
}
