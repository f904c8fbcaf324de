// Package job defines the words that every part of boardd shares: a job, its
// posting, a claim on it, an event about it, and the one error type. It uses
// the standard library only.
package job

import (
	"slices"
	"strings"
	"time"
)

// State says where a job stands.
type State uint8

// The states of a job. They are the ones a person sees; a delayed or held job
// is Unclaimed with a time before which nobody may claim it.
const (
	Unknown   State = iota // no such job is known
	Unclaimed              // on the board, free or waiting for its time
	Claimed                // somebody works on it under a lease
	Complete               // ended: only a tombstone or a history record is left
	Trashed                // set aside for a person to look at
)

var stateNames = [...]string{"UNKNOWN", "UNCLAIMED", "CLAIMED", "COMPLETE", "TRASHED"}

// String returns the public name, as in the API.
func (s State) String() string { return name(stateNames[:], int(s)) }

// Outcome says how a Complete job ended.
type Outcome uint8

// The outcomes. NoOutcome is that of a job that has not ended. Purged is never
// shown to a client: a purged job is not found, and only the retry of the purge
// itself learns of it.
const (
	NoOutcome Outcome = iota
	Consumed
	Canceled
	Failed
	Purged
)

var outcomeNames = [...]string{"NONE", "CONSUMED", "CANCELED", "FAILED", "PURGED"}

// String returns the public name, as in the API.
func (o Outcome) String() string { return name(outcomeNames[:], int(o)) }

// Priority is a job's class. A smaller number comes first; the zero value is
// Normal, so that a posting that names none has TaskFlow's default.
type Priority int8

// The classes of TaskFlow, from first to last.
const (
	VeryHigh Priority = -2
	High     Priority = -1
	Normal   Priority = 0
	Low      Priority = 1
	VeryLow  Priority = 2
)

var priorityNames = [...]string{"VERY_HIGH", "HIGH", "NORMAL", "LOW", "VERY_LOW"}

// String returns TaskFlow's name for the class.
func (p Priority) String() string { return name(priorityNames[:], int(p)+2) }

// ParsePriority returns the class with the given name, as TaskFlow spells it.
func ParsePriority(s string) (Priority, bool) {
	for i, n := range priorityNames {
		if n == s {
			return Priority(i - 2), true
		}
	}
	return Normal, false
}

func name(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "INVALID"
	}
	return names[i]
}

// Encoding names how the details of a posting are written.
type Encoding uint8

// The encodings. A store declares which ones it keeps byte for byte.
const (
	JSON    Encoding = iota // a JSON object as text (UTF-8)
	Msgpack                 // a msgpack map, as TaskFlow's Redis jobboard writes it
)

var encodingNames = [...]string{"json", "msgpack"}

// String returns the public name, as in the API.
func (e Encoding) String() string { return name(encodingNames[:], int(e)) }

// Book points to a logbook that describes a job's work, as in TaskFlow.
// The zero Book is none.
type Book struct {
	UUID string
	Name string
}

// Label is one key and value that describes a job or a worker.
type Label struct {
	Key   string
	Value string
}

// LabelsOf returns labels in the order of their keys; nil if there are none.
func LabelsOf(values map[string]string) []Label {
	if len(values) == 0 {
		return nil
	}
	labels := make([]Label, 0, len(values))
	for key, value := range values {
		labels = append(labels, Label{Key: key, Value: value})
	}
	slices.SortFunc(labels, func(a, b Label) int { return strings.Compare(a.Key, b.Key) })
	return labels
}

// Token is the proof of one claim. For one job (Generation, Epoch) only grows,
// so that a system downstream can refuse an older one; Nonce makes it
// unguessable and unique even when a store that was rolled back issues an epoch
// twice. The zero Token proves nothing.
type Token struct {
	Generation uint64   // of the board; changes when acknowledged writes were lost
	Epoch      uint64   // from a counter of the board or of its store
	Nonce      [16]byte // random
}

// IsZero reports whether t is no token at all.
func (t Token) IsZero() bool { return t == Token{} }

// Limits on names and sizes that hold on every board and every store, in bytes
// unless said otherwise. A store may have lower ones for details and records.
const (
	MaxName          = 256     // a job's name
	MaxOwner         = 256     // a claim's owner
	MaxLabels        = 64      // labels of one job or worker, in number
	MaxLabelKey      = 128     // a label's key
	MaxLabelValue    = 128     // a label's value
	MaxReason        = 4 << 10 // a reason; a longer one is cut
	MaxDetails       = 4 << 20 // details of one job
	MaxDetailsNest   = 64      // nesting of details, in levels
	MaxBookName      = 256     // a book's name or uuid
	MaxNotBeforeDays = 36525   // how far ahead a job may be delayed, in days
)

// Limits on leases. A board may lower MaxLease.
const (
	MinLease        = time.Second
	DefaultLease    = 30 * time.Second
	MaxLease        = 24 * time.Hour
	MaxTimeout      = 365 * 24 * time.Hour // of a job: for which one claim may stand
	MaxUniqueKey    = 255                  // bytes of a unique key
	MaxUniqueWindow = 365 * 24 * time.Hour // for which a job has its unique key
	MinUniqueWindow = time.Second
	MaxBatchName    = 255 // bytes of a batch's name
)

// DefaultMaxBackoff is the longest delay before another attempt where a board
// sets none.
const DefaultMaxBackoff = time.Hour
