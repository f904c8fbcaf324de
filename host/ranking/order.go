package ranking

import (
	"math"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Order sorts jobs: score (higher first), priority class, operation priority
// (smaller first), then oldest by (createdAt, sequence, id). It survives
// abandon and expiry, since none of these parts is changed by them.
type Order struct {
	Score             int64
	CreatedAt         int64 // unix microseconds
	OperationPriority int32
	Priority          job.Priority
	Sequence          uint64
	ID                job.ID
}

// Less reports whether a comes before b.
func (a Order) Less(b Order) bool { return a.Before(&b) }

// Before is Less without a copy.
func (a *Order) Before(b *Order) bool {
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

// Alike reports whether two jobs differ in nothing but their age: of those that are
// alike, the first one is the oldest.
func (a *Order) Alike(b *Order) bool {
	return a.Score == b.Score && a.Priority == b.Priority && a.OperationPriority == b.OperationPriority
}

// LastAlike is a place behind all jobs that are like this one.
func (a *Order) LastAlike() Order {
	last := *a
	last.CreatedAt, last.Sequence = math.MaxInt64, math.MaxUint64
	for i := range last.ID {
		last.ID[i] = 0xff
	}
	return last
}

// AgeRanks bounds the kinds of jobs of one key among which the oldest one is looked
// for, in their order: those whose order differs in more than their age.
const AgeRanks = 8

// Created is a time as an Order has it.
func Created(at time.Time) int64 { return at.UnixMicro() }
