package driver

import (
	"context"
	"iter"
)

// An Examiner is a Driver that can find what is wrong with a board in its store,
// beyond the jobs and bad records that Scan shows. `boardd doctor` calls it. A
// driver need not implement it.
type Examiner interface {
	// Examine looks at a board, which is open, and yields what it finds, in any
	// order. It changes nothing. It may read the board once from end to end, at a
	// pace that the store's other users do not feel.
	Examine(ctx context.Context, board string) iter.Seq2[Finding, error]
}

// Finding is one thing that somebody should know of a board's store.
type Finding struct {
	// Code names the sort of finding for programs: words of [a-z] with dashes,
	// such as "leaked-key".
	Code     string
	Severity Severity
	Subject  string // which job, key, path or setting, in the store's own words
	Problem  string // one sentence, for people
	Mend     string // the command that would mend it; empty where none would
}

// Severity says how much a finding matters.
type Severity uint8

// The severities.
const (
	Note    Severity = iota + 1 // nothing is wrong; worth knowing
	Warning                     // something may go wrong
	Problem                     // something is wrong: jobs are stuck, hidden or in danger
)

// String returns the severity's name.
func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	case Problem:
		return "problem"
	}
	return "unknown"
}
