package job

import "time"

// OperationStatus says how one operation of a job stands, or the whole job by
// its operations.
type OperationStatus uint8

// The statuses of Ganeti's job queue.
const (
	NoOperation OperationStatus = iota // the job has no operations
	OpQueued                           // nobody has begun it
	OpWaiting                          // a worker has it and waits for what it needs
	OpCanceling                        // it is to be canceled by the worker that has it
	OpRunning
	OpCanceled
	OpSuccess
	OpError
)

var operationNames = [...]string{"NONE", "QUEUED", "WAITING", "CANCELING", "RUNNING", "CANCELED", "SUCCESS", "ERROR"}

// String returns the public name, as in the API.
func (s OperationStatus) String() string { return name(operationNames[:], int(s)) }

// Finished reports whether the status never changes any more.
func (s OperationStatus) Finished() bool { return s >= OpCanceled && s <= OpError }

// Operation is one of the steps that a job is made of. They run one after
// another.
type Operation struct {
	Index    int32
	Name     string
	Input    []byte // JSON; nil: none
	Priority int32  // MinOperationPriority (first) to MaxOperationPriority
	Status   OperationStatus
	Result   []byte // JSON; nil: none, or not asked for

	StartedAt  time.Time // when a worker began with it, be it to wait; zero before
	ExecutedAt time.Time // when it began to run
	EndedAt    time.Time
}

// NewOperation is what a poster gives of an operation.
type NewOperation struct {
	Name     string
	Input    []byte // JSON; nil: none
	Priority int32
}

// Prerequisite is a job that has to end first, with one of the statuses.
type Prerequisite struct {
	ID       ID
	Statuses []OperationStatus // of OpSuccess, OpError and OpCanceled; none: OpSuccess
}

// LogEntry is an entry of a job's log.
type LogEntry struct {
	Serial  int64 // grows by one from entry to entry of a job; the first is 1
	Index   int32 // of the operation that it is about
	At      time.Time
	Type    string // the writer's word for the sort of entry
	Message string
}

// LogCut is the type of the entry that stands for entries that are not kept any
// more.
const LogCut = "cut"

// Limits on operations and logs, in bytes unless said otherwise.
const (
	MinOperationPriority = -20
	MaxOperationPriority = 19

	MaxOperations      = 256       // of one job, in number
	MaxOperationInput  = 64 << 10  // input of one operation
	MaxOperationInputs = 512 << 10 // names and inputs of all operations of a job
	MaxResult          = 64 << 10  // result of one operation
	MaxResults         = 512 << 10 // results of all operations of a job

	MaxLogEntries = 10_000    // kept of one job, in number; the oldest go first
	MaxLogBytes   = 1 << 20   // kept of one job; the oldest go first
	MaxLogMessage = 16 << 10  // of one entry
	MaxLogType    = 64        // type of one entry
	MaxLogAppend  = 256 << 10 // of the entries of one call

	MaxAfter = 64 // jobs that one job waits for, in number
	MaxBook  = 1 << 20
)
