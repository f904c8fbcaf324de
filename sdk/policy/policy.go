// Package policy defines the contract between a board and the rules that its
// operators and tenants load: who may claim which job, and which comes first.
package policy

import (
	"context"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// A Policy judges jobs in batches. It is a function of what it is shown: the
// same batch gives the same answers, however jobs are grouped into batches.
type Policy interface {
	// Manifest says what the policy is and what its answers depend on.
	Manifest() Manifest

	// Eligible writes a verdict for each job of the batch. It is called only
	// when the manifest has Eligibility.
	Eligible(ctx context.Context, batch *Batch, verdicts []Verdict) error

	// Score writes a score for each job of the batch, higher first. It is called
	// only when the manifest has Ordering.
	Score(ctx context.Context, batch *Batch, scores []int64) error
}

// Manifest declares a policy.
type Manifest struct {
	Name        string
	Version     string
	Eligibility bool // Eligible may be called
	Ordering    bool // Score may be called
	ByTime      bool // answers depend on Batch.Now
	ByWorker    bool // answers depend on Batch.Worker

	// WorkerLabels and Labels name the labels of the worker and of the job that
	// the policy reads; it is shown no other.
	WorkerLabels []string
	Labels       []string

	// Reasons are the texts that Verdict.Reason points into.
	Reasons []string
}

// MaxBatch is the most jobs that a batch has.
const MaxBatch = 1024

// Batch is what a policy is shown.
type Batch struct {
	Now    time.Time   // zero unless Manifest.ByTime
	Worker []job.Label // sorted by key; nil unless Manifest.ByWorker
	Jobs   []Job
}

// Job is what a policy sees of a job.
type Job struct {
	ID          job.ID
	Name        string
	Priority    job.Priority
	Labels      []job.Label // sorted by key
	CreatedAt   time.Time
	NotBefore   time.Time
	Sequence    uint64
	Attempt     int32
	MaxAttempts int32
}

// Decision is a policy's answer on one job.
type Decision uint8

// The decisions. The zero value denies, so that an answer that was forgotten
// never widens access.
const (
	Deny Decision = iota
	Allow
	Defer // deny now, and ask again at Verdict.Until
)

// Verdict is a policy's answer on one job, with its reason.
type Verdict struct {
	Decision Decision
	Reason   int       // index into Manifest.Reasons; ignored for Allow
	Until    time.Time // for Defer
}
