// Package board gives every store the same behaviour: leases, tokens, attempts,
// order, waiting, watching, trash. It is written once, above the driver contract.
//
// Locks. Three mutexes are held while something is asked or made that takes its time,
// and whoever waits for one of them waits as long, whatever becomes of their context:
//   - tally.mu, while the store counts the jobs;
//   - feed.reading, while the store is asked for a log. It comes before feed.mu and
//     inFlight.mu;
//   - Board.ruling, while SetRules makes a ruleset and gives it to the index. It comes
//     before order.mu and the index's lock. No policy and no store is asked meanwhile.
//
// Told.mu is held while an event is written in a form of the network. Every other mutex
// is held while memory is read or written, never while a store, a policy, a Recorder or
// the index is called. Two of these are held together in one order only: logs.mu, then
// feed.mu. hub.mu guards the round and the listeners too.
//
// What an inFlight hands out is no mutex but stays taken while the store is asked. A
// call takes its entry of Board.requests first and jobs of Board.flight after it, all of
// a round at once or none: so no two calls wait for each other.
package board

import (
	"context"
	"log/slog"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Spec says what a board is. The zero value of each optional field is its
// default.
type Spec struct {
	Name     string // shown to clients
	Key      string // unique on the backend; for boards of tenants TENANT/NAME
	Settings []byte // the driver's settings for it, a JSON object

	FenceByOwner  bool          // fencing = "owner": a claim may be named by its owner alone
	Observe       bool          // mode = "observe"
	Lease         time.Duration // granted when a claim asks for none; job.DefaultLease
	MaxLease      time.Duration // job.MaxLease
	AllowNoExpiry bool
	Window        time.Duration // idempotency window; driver.DefaultWindow
	History       time.Duration // how long ended jobs are kept with all that belongs to them; 0: not at all

	HistoryEntries int64 // at most so many ended jobs; DefaultMaxHistoryEntries
	HistoryBytes   int64 // at most so many bytes of them; DefaultMaxHistoryBytes

	Retry Retry
	Rules Rules // the first ones; see SetRules
	Books Books // books that another program keeps and the board only reads; nil: none

	Recorder Recorder // nil: nothing is recorded

	Slept Slept // when it was last closed, and how it stood until now

	// Full is an error of the kind job.QuotaExceeded while a limit lets nobody claim a job, for
	// Explain; nil: there are no limits.
	Full func(context.Context) error

	// Wakes says that the board is opened when others leave postings in its store while it is
	// closed. It does not rest without it where they may.
	Wakes bool

	Logger *slog.Logger // whose lines say which board it is; nil: slog.Default(), which is told
}

// Slept is how a board stood on which nothing happened while it was closed. The zero value says
// nothing.
type Slept struct {
	Since  time.Time
	Counts Counts
}

// Retry says what becomes of a job whose claim was lost or given back.
type Retry struct {
	MaxAttempts int32         // then the trash; 0: no limit
	Backoff     time.Duration // before the second attempt; doubles
	MaxBackoff  time.Duration // 0: job.DefaultMaxBackoff
}

// What is kept of ended jobs at most where the board keeps a history; the oldest
// go first. A store may keep less.
const (
	DefaultMaxHistoryEntries = 100_000
	DefaultMaxHistoryBytes   = 1 << 30
)

// Limits of one call.
const (
	MaxBatch      = 1000             // items of one call
	MaxPage       = 1000             // jobs of one page
	DefaultPage   = 100              //
	MaxWait       = 60 * time.Second // a longer wait is cut
	MaxWaiters    = 10_000           // calls that wait on one board
	MaxRequestID  = 256              // bytes
	MaxClaimBytes = 16 << 20         // details that one claim call answers, beyond the first 32 jobs; then it gives fewer jobs than asked for
	MaxClaimNames = 256              // names of one claim call
)

// Ref names a claim in a request.
type Ref struct {
	ID    job.ID
	Owner string // may be empty if Token is given
	Token string // as Claim tokens are written, see FormatToken
}

// JobResult is the outcome of one item: a job, or what was wrong.
type JobResult struct {
	Job *job.Job
	Err error

	Existing bool // of a posting: Job has its unique key, and nothing was posted

	again bool // of a posting: Job was posted before by an equal one
}

// GetOptions say how jobs are to be read.
type GetOptions struct {
	Details    bool
	Operations bool          // with their results
	Log        bool          // what is kept of it
	AsItWas    bool          // the whole of it, for PostAsItWas
	Wait       time.Duration // answer when every named job is COMPLETE or TRASHED
}

// ListRequest asks for a page of jobs.
type ListRequest struct {
	States     []job.State // none: Unclaimed and Claimed
	Filter     string
	Details    bool
	Operations bool // without their results
	PageSize   int  // 0: DefaultPage
	PageToken  string
	Wait       time.Duration
}

// ListPage is a page of jobs.
type ListPage struct {
	Jobs    []*job.Job
	Next    string
	Corrupt []CorruptJob // with the first page of the open jobs, where no filter is asked for
}

// Counts says how many jobs a board has.
type Counts struct {
	Ready, Delayed, Claimed, Trashed, Complete int64
	OldestReadyAt                              time.Time
	Corrupt                                    int64 // what cannot be read as a job, as far as is known

	History *HistoryCounts // nil: the board keeps none
}

// HistoryCounts says what is kept of ended jobs, and what may be at most.
type HistoryCounts struct {
	Jobs, Bytes       int64
	MaxJobs, MaxBytes int64
	Full              bool // the next job that ends replaces the oldest one, before History is over
}

// ClaimRequest asks for claims.
type ClaimRequest struct {
	Owner        string
	IDs          []job.ID // those; or none: the best Max
	Max          int      // 0: 1
	Names        []string
	Filter       string
	Lease        time.Duration // 0: the board's
	NoExpiry     bool
	WorkerLabels []job.Label // sorted by key
	Wait         time.Duration
	RequestID    string
}

// ClaimResponse is what a claim call gives.
type ClaimResponse struct {
	Claims   []job.Claim // their jobs have no Operations: see Steps
	Steps    []Steps     // the operations of each claim's job, in the order of Claims
	Failures []ClaimFailure
}

// ClaimFailure says why a chosen job was not claimed.
type ClaimFailure struct {
	ID  job.ID
	Err error
}

// ExtendResult is the outcome of one extension.
type ExtendResult struct {
	Lease           time.Duration // 0: the claim does not expire
	LeaseExpiresAt  time.Time
	CancelRequested bool
	Err             error
}

// AbandonOptions say how jobs are given back.
type AbandonOptions struct {
	Reason        string
	RetryAfter    *time.Duration // nil: the board's back-off
	RefundAttempt bool
	Begun         bool // of a claim that was given ahead: its handler had started
}

// Explanation says why a job is not (yet) claimed.
type Explanation struct {
	State    job.State
	Position int64 // -1: it has no place in the claim order
	Verdict  string
	Reason   string
	Score    *int64
	Policy   string
}

// Entity is somebody who works here.
type Entity struct {
	Kind, Name string
	Metadata   []byte // JSON
	SeenAt     time.Time
	ExpiresAt  time.Time // zero: never
}

// Status is how a board stands.
type Status struct {
	Ready      bool
	Problem    string // why it is not ready
	Paused     bool
	Why        string // the reason of the pause
	Generation uint64
	Durability driver.Durability
	Window     time.Duration
	Empties    bool   // the store takes a board that has moved out of the sight of other programs, see driver.Empty
	Loss       string // of acknowledged changes, while nobody has acknowledged it; "": none
}

// The board's methods, in one place for its users (see the files beside):
//
//	New(d driver.Driver, spec Spec) *Board
//	Run(ctx) error                                  // opens it on the driver, loads, follows changes, expires claims; until ctx ends
//	Ready(ctx) error                                // blocks until it can serve; Unavailable with the reason when ctx ends first
//	Post(ctx, []job.Posting) ([]JobResult, error)   // an error is about the whole call
//	Get(ctx, []job.ID, GetOptions) ([]JobResult, error)
//	List(ctx, ListRequest) (ListPage, error)
//	Count(ctx) (Counts, error)
//	Claim(ctx, ClaimRequest) (ClaimResponse, error)
//	Extend(ctx, []Ref, lease time.Duration) ([]ExtendResult, error)
//	Consume(ctx, []Ref) ([]error, error)
//	ConsumeAs(ctx, []Ref, job.Outcome) ([]error, error)
//	Abandon(ctx, []Ref, AbandonOptions) ([]error, error)
//	Trash(ctx, []Ref, ids []job.ID, reason string) ([]error, error)   // refs first, then ids
//	Restore(ctx, []job.ID) ([]error, error)
//	Purge(ctx, []job.ID) ([]error, error)
//	Release(ctx, []job.ID, expectOwner, reason string) ([]error, error)
//	Archive(ctx, []job.ID) ([]error, error)
//	StartOperation(ctx, OperationRequest) (OperationResult, error)
//	FinishOperation(ctx, OperationRequest) (OperationResult, error)
//	MarkOperations(ctx, MarkRequest) (MarkResult, error)
//	AppendLog(ctx, LogRequest) (LogResult, error)
//	FollowLog(ctx, job.ID, newerThan int64, follow bool) iter.Seq2[job.LogEntry, error]
//	ReadLog(ctx, job.ID, newerThan int64, max int, wait time.Duration) (LogPage, error)
//	Cancel(ctx, []job.ID, force bool) ([]Change, error)
//	SetPriority(ctx, []job.ID, job.Priority) ([]Change, error)
//	SetOperationPriority(ctx, []job.ID, int32) ([]Change, error)
//	PutBook(ctx, Book, ifVersion *uint64) (uint64, error);  Book(ctx, uuid string) (Book, error)
//	Watch(ctx, from string) iter.Seq2[job.Event, error];  WatchOwner(ctx, owner, from string)
//	Events(ctx, from string, max int, wait time.Duration) ([]job.Event, string, error)
//	Explain(ctx, id job.ID, owner string, worker []job.Label) (Explanation, error)
//	SetRules(Rules) <-chan struct{};  Shadow() *ShadowReport
//	Standing(most int) (list []Happening, more int64)
//	RegisterEntity(ctx, Entity, ttl time.Duration) (Entity, error)
//	RemoveEntity(ctx, kind, name string) error
//	Entities(ctx) ([]Entity, error)
//	Pause(ctx, reason string) error;  Resume(ctx) error
//	Status() Status;  Spec() Spec
//	Metrics() *Metrics;  Waiting() int64            // counters, for the host to show
//	FormatToken(id job.ID, t job.Token) string;  ParseToken(id job.ID, text string) (job.Token, error)
