// Package policy defines the contract between a board and the rules that its
// operators and tenants load: who may claim which job, and which comes first.
//
// A rule that is compiled in implements [Policy]. A rule that is loaded is a
// WebAssembly module; abi.md in this folder says what it exports, the packages
// guest, native and policytest are for its author.
package policy

import (
	"context"
	"math"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// A Policy judges jobs in batches. It is a function of what it is shown: the
// same batch gives the same answers, however jobs are grouped into batches. Its
// methods may be called from several goroutines.
type Policy interface {
	// Manifest says what the policy is and what its answers depend on. It is the
	// same each time, and nobody changes what it points to.
	Manifest() Manifest

	// Eligible writes a verdict for each job of the batch. It is called only
	// when the manifest has Eligibility.
	Eligible(ctx context.Context, batch *Batch, verdicts []Verdict) error

	// Score writes a score for each job of the batch, higher first. It is called
	// only when the manifest has Ordering.
	Score(ctx context.Context, batch *Batch, scores []int64) error
}

// A Ranker is a Policy whose manifest has Counts: it orders groups of jobs by how
// many of each are running.
type Ranker interface {
	Policy

	// RankKeys writes a rank for each key of the batch.
	RankKeys(ctx context.Context, keys *Keys, ranks []Rank) error
}

// An Explainer is a Policy whose manifest has Explains.
type Explainer interface {
	Policy

	// Explain says in words how the policy came to its answer on the batch's only
	// job. The text is the policy's own, at most abi.TextSize bytes.
	Explain(ctx context.Context, batch *Batch) (string, error)
}

// MaxBatch is the most jobs or keys that a batch has.
const MaxBatch = 1024

// Batch is what a policy is shown.
type Batch struct {
	Now    time.Time   // zero unless Manifest.ByTime
	Worker []job.Label // sorted by key; nil unless Manifest.ByWorker
	Jobs   []Job
}

// Job is what a policy sees of a job.
type Job struct {
	ID                job.ID
	Name              string
	Priority          job.Priority
	OperationPriority int32
	Labels            []job.Label // sorted by key
	Facts             []Fact      // one for each of Manifest.Facts, in its order; nil: all absent
	CreatedAt         time.Time
	NotBefore         time.Time
	Sequence          uint64
	Attempt           int32
	MaxAttempts       int32
}

// NoOpinion is the score of a job that a policy leaves to the next order.
const NoOpinion = math.MinInt64

// Decision is a policy's answer on one job.
type Decision uint8

// The decisions. The zero value denies, so that an answer that was forgotten
// never widens access.
const (
	Deny Decision = iota
	Allow
	Defer // deny now; a policy by time is asked again at Verdict.Until
)

// Verdict is a policy's answer on one job, with its reason.
type Verdict struct {
	Decision Decision
	Reason   int       // index into Manifest.Reasons; ignored for Allow
	Until    time.Time // for how long the verdict of a policy by time stands, in whole seconds, if that is not a whole number of ticks; zero: for a tick. It may be asked sooner
}

// Keys is what a Ranker is shown.
type Keys struct {
	Now  time.Time // zero unless Manifest.ByTime
	Keys []Key
}

// Key is a group of jobs: those with the same value of what Manifest.Counts
// names.
type Key struct {
	Key     string
	Running int64     // claimed now
	Waiting int64     // ready
	Served  int64     // claimed at any time, fading with a half-life of an hour
	Oldest  time.Time // when the oldest of the waiting was created; zero if none waits
}

// Rank is the place of a group of jobs among the others.
type Rank struct {
	Score int64 // higher first
	Full  bool  // none of it may be claimed until its counts change

	// Most is how many of it may run at the same time; 0: the policy does not say.
	// A store that counts holds several servers to it exactly, while by Full each
	// of them goes by the claims that it knows of.
	Most int64
}
