package ranking

import (
	"time"

	"github.com/boardd/boardd/sdk/job"
)

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

// Created is a time as an Order has it.
func Created(at time.Time) int64 { return at.UnixMicro() }
