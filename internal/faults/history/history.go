// Package history holds what clients asked of a board and what they were told, with
// the times of one clock that never goes back, so that a checker can say afterwards
// whether the board kept its promises. A history is data: it is written as JSON when a
// run fails, and can be checked again without any server.
package history

import (
	"slices"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Call names what a client asked for.
type Call string

// The calls.
const (
	Post     Call = "post"
	Claim    Call = "claim"
	Extend   Call = "extend"
	Consume  Call = "consume"
	Abandon  Call = "abandon"
	Trash    Call = "trash"     // by the claim's token
	SetAside Call = "set aside" // into the trash, by a person, of a job that nobody claims
	Restore  Call = "restore"
	Purge    Call = "purge"
	Release  Call = "release" // by a person, without the token
	Cancel   Call = "cancel"
	Get      Call = "get"
	Foreign  Call = "foreign" // of somebody on another tenant's board, about a job that was posted here
)

// Outcome says what a client knows of its call.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // it was carried out, now or before
	Refused Outcome = "refused" // a definite error: it changed nothing
	Unknown Outcome = "unknown" // it may have taken effect, or may still do so
)

// Forever is the end of an op whose outcome nobody was told.
const Forever = time.Duration(1 << 60)

// Op is a call about one job. A call on several jobs is as many ops.
type Op struct {
	Client string `json:"client"`
	Call   Call   `json:"call"`
	Board  string `json:"board,omitempty"`
	Server string `json:"server,omitempty"` // that was asked; empty: not known which

	// Job is empty for a claim of the best job that got none, or whose client does not
	// know what it got.
	Job string `json:"job,omitempty"`

	// From and To order the ends of all ops of a history, where the clock is too coarse.
	// Both are 0 in a history that was written by other means: then the times do.
	From  int64         `json:"from,omitempty"`
	To    int64         `json:"to,omitempty"`
	Begin time.Duration `json:"begin"` // since the history began
	End   time.Duration `json:"end"`   // Forever where the outcome is unknown

	// What was asked.
	Token    string        `json:"token,omitempty"`   // of the claim that is spoken of
	Owner    string        `json:"owner,omitempty"`   // who claims; no two calls have the same
	Request  string        `json:"request,omitempty"` // names the call, so that it can be repeated
	Lease    time.Duration `json:"lease,omitempty"`
	Delay    time.Duration `json:"delay,omitempty"`    // until the abandoned job may be claimed
	Posting  string        `json:"posting,omitempty"`  // what is posted, in short; equal for equal postings
	Priority int32         `json:"priority,omitempty"` // of what is posted; 1 comes first
	Best     bool          `json:"best,omitempty"`     // a claim of whatever comes first
	Steps    int           `json:"steps,omitempty"`    // how many operations the job has
	Team     string        `json:"team,omitempty"`     // of the worker that claims, or of the job that is posted
	Rank     int           `json:"rank,omitempty"`     // of the job that is posted, by which policies order
	Key      string        `json:"key,omitempty"`      // of the job that is posted: one job of the board has it while it is open
	Timeout  time.Duration `json:"timeout,omitempty"`  // of the job that is posted: for which one claim may stand; 0: for any time
	Attempts int           `json:"attempts,omitempty"` // of the job that is posted: it goes to the trash when it had so many; 0: never

	// What was answered.
	Outcome    Outcome       `json:"outcome"`
	Kind       job.Kind      `json:"kind,omitempty"` // of the error
	Text       string        `json:"text,omitempty"` // of the error, for people
	State      job.State     `json:"state,omitempty"`
	Granted    string        `json:"granted,omitempty"` // the token that a claim got
	Given      time.Duration `json:"given,omitempty"`   // the lease of a claim or an extension; 0: not known
	Generation int64         `json:"generation,omitempty"`
	Epoch      int64         `json:"epoch,omitempty"`
	Sequence   int64         `json:"sequence,omitempty"`
	Taken      bool          `json:"taken,omitempty"`    // it was refused since another job has the key
	Shown      string        `json:"shown,omitempty"`    // the posting of a job that was shown
	Holder     string        `json:"holder,omitempty"`   // who claims a job that was shown
	Owners     []string      `json:"owners,omitempty"`   // who is said to have claimed it before
	TimedOut   []string      `json:"timedOut,omitempty"` // of these, whose claims are said to have ended by the job's timeout

	// Retries says that the client tries again by itself where an answer is lost, so that
	// the call may have been carried out more than once.
	Retries bool `json:"retries,omitempty"`

	Final bool `json:"final,omitempty"` // made after everything had come to rest

	// Outside says that another program did it on the store itself, such as TaskFlow.
	Outside bool `json:"outside,omitempty"`

	// Judged is set by the checkers of a claim that a policy may have denied.
	Judged bool `json:"-"`
}

// List is a listing of a board, in the order in which it came.
type List struct {
	Server string        `json:"server,omitempty"`
	Board  string        `json:"board,omitempty"`
	State  job.State     `json:"state"` // of the jobs that were asked for
	Begin  time.Duration `json:"begin"`
	End    time.Duration `json:"end"`
	Jobs   []Listed      `json:"jobs"`
	Final  bool          `json:"final,omitempty"` // made after everything had come to rest
}

// Listed is a job in a listing.
type Listed struct {
	Job      string `json:"job"`
	Priority int32  `json:"priority"` // 1 comes first
	Sequence int64  `json:"sequence"`
	Created  int64  `json:"created,omitempty"` // in microseconds since 1970, as the server shows it
	Holder   string `json:"holder,omitempty"`
}

// Count is how many jobs a board said that it has.
type Count struct {
	Server    string        `json:"server,omitempty"`
	Board     string        `json:"board,omitempty"`
	Begin     time.Duration `json:"begin"`
	End       time.Duration `json:"end"`
	Unclaimed int64         `json:"unclaimed"`
	Claimed   int64         `json:"claimed"`
	Trashed   int64         `json:"trashed"`
	Complete  int64         `json:"complete"`
	Final     bool          `json:"final,omitempty"`
}

// Watcher is somebody who watched a board, and everything that it was shown.
type Watcher struct {
	Name   string        `json:"name"`
	Board  string        `json:"board,omitempty"`
	Opened time.Duration `json:"opened"` // when it knew that nothing later would be left out; Forever: never
	Closed time.Duration `json:"closed"` // until when it watched
	Caught bool          `json:"caught"` // it went on until the board was at rest and had nothing more to show
	Events []Event       `json:"events"`
}

// Event is one change as a watcher was shown it.
type Event struct {
	Type       job.EventType `json:"type"`
	Job        string        `json:"job,omitempty"`
	Owner      string        `json:"owner,omitempty"`
	Generation uint64        `json:"generation"` // of its cursor
	Position   uint64        `json:"position"`   // likewise
	Seen       time.Duration `json:"seen"`
}

// Fault is what was broken on purpose, and when.
type Fault struct {
	Name  string        `json:"name"`
	Begin time.Duration `json:"begin"`
	End   time.Duration `json:"end"`
}

// Pace is how fast the machine was at a time: a thread needed so many times as long for a piece of
// work as it does where nothing else wants its processor.
type Pace struct {
	At    time.Duration `json:"at"`
	Times float64       `json:"times"`
}

// Times for something are those of a machine that does something else beside, so that work takes
// fair times as long as alone. Where it takes longer they are longer, up to slowest times.
const (
	fair    = 2
	slowest = 4
)

// Stretched is how long something may take from a time on, by how fast the machine was then: usual
// where nothing is known of that.
func (h *History) Stretched(at, usual time.Duration) time.Duration {
	times := 1.0
	for _, p := range h.Paces {
		if p.At >= at && p.At <= at+slowest*usual {
			times = max(times, p.Times/fair)
		}
	}
	return time.Duration(min(times, slowest) * float64(usual))
}

// History is one run.
type History struct {
	Store    string    `json:"store"`
	Seed     uint64    `json:"seed"`
	Faults   []Fault   `json:"faults,omitempty"`
	Paces    []Pace    `json:"paces,omitempty"`
	Ops      []Op      `json:"ops"`
	Lists    []List    `json:"lists,omitempty"`
	Counts   []Count   `json:"counts,omitempty"`
	Watchers []Watcher `json:"watchers,omitempty"`

	// Policies are the calls about the policies of boards, those on each board by one
	// client at a time.
	Policies []PolicyCall `json:"policies,omitempty"`

	// Schedules are those of a board on which nothing else is done.
	Schedules []Schedule `json:"schedules,omitempty"`

	// Batches are those whose jobs have all left their board.
	Batches []Batch `json:"batches,omitempty"`

	// Relays are jobs that were posted through one server and waited for at another.
	Relays []Relay `json:"relays,omitempty"`

	// Moves are those of boards from store to store.
	Moves []Move `json:"moves,omitempty"`

	// Webhooks are those of a board on which nothing else is done.
	Webhooks []Webhook `json:"webhooks,omitempty"`

	// OpenJobs is the limit of a board's open jobs, by its name.
	OpenJobs map[string]int `json:"openJobs,omitempty"`

	// Shared is set where other programs wrote to the store as well. What they did is
	// not among the ops.
	Shared bool `json:"shared,omitempty"`

	// PutBack is set where the store may have been put back to an earlier state. Reported says
	// what the server then said of it; empty: nothing.
	PutBack  bool   `json:"putBack,omitempty"`
	Reported string `json:"reported,omitempty"`
}

// Schedule is one that posts a job for each tick, and what became of them.
type Schedule struct {
	Name   string        `json:"name"`
	First  time.Time     `json:"first"` // tick
	Every  time.Duration `json:"every"` // from tick to tick
	Purged []string      `json:"purged,omitempty"`
	Jobs   []string      `json:"jobs,omitempty"` // that were listed at rest

	// From and To are the ticks that the schedule had posted last, before that list and
	// after it. WentOn says that one of them came when nothing was broken any more.
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	WentOn bool      `json:"wentOn"`
}

// Batch is one that somebody posted, and what became of its jobs, of which nobody else knew.
type Batch struct {
	BatchCounts

	Name   string      `json:"name"`
	Then   string      `json:"then"`            // the uuid of the job that follows
	Early  bool        `json:"early,omitempty"` // that was shown as posted while a job was open
	Away   bool        `json:"away,omitempty"`  // that was purged once it was there
	Listed bool        `json:"listed"`          // it is on the board at rest
	Done   bool        `json:"done"`            // the batch was shown so at rest
	Shown  BatchCounts `json:"shown"`           // likewise
}

// BatchCounts says what became of a batch's jobs.
type BatchCounts struct {
	Posted   int `json:"posted"`
	Consumed int `json:"consumed,omitempty"`
	Canceled int `json:"canceled,omitempty"`
	Trashed  int `json:"trashed,omitempty"`
	Purged   int `json:"purged,omitempty"`
}

// Relay is a job that was posted through one server, and that the only one who knows of it
// waited for at another.
type Relay struct {
	Job   string        `json:"job"`
	From  string        `json:"from"`  // the server that posted it
	To    string        `json:"to"`    // the server that was asked for it
	Ready time.Duration `json:"ready"` // when its post was acknowledged
	Asked time.Duration `json:"asked"` // when the claim was begun that was answered without an error
	Wait  time.Duration `json:"wait"`  // how long that claim was to wait
	Got   time.Duration `json:"got"`   // when it was answered with the job; Forever: it was answered without
}

// Move is one of a board from store to store.
type Move struct {
	Board string        `json:"board"`
	To    string        `json:"to"`
	Begin time.Duration `json:"begin"` // when it was asked for
	End   time.Duration `json:"end"`   // when it was seen to have ended; Forever: never
	State string        `json:"state"` // as it was seen last; empty: nobody was told that it had begun
}

// Moved reports whether a board may have moved between two times.
func (h *History) Moved(board string, begin, end time.Duration) bool {
	return slices.ContainsFunc(h.Moves, func(m Move) bool { return m.Board == board && m.Begin <= end && m.End >= begin })
}

// Due is how many ticks there are until one of them, with it.
func (s *Schedule) Due(last time.Time) int {
	if last.Before(s.First) {
		return 0
	}
	return int(last.Sub(s.First)/s.Every) + 1
}
