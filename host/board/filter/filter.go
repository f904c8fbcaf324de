// Package filter reads the filters of callers ("name = scan AND labels.gpu = a100") and
// tells which jobs match.
package filter

import (
	"cmp"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board/jsontext"
	"github.com/boardd/boardd/sdk/job"
)

// Filter is a parsed filter: conditions that must all hold. The zero filter
// lets everything pass.
type Filter struct {
	Text  string // in a canonical form; empty for none
	terms []term
}

// term is one condition.
type term struct {
	field    field
	key      string // of labels.K and details.K
	op       operator
	value    string
	number   number // value as a number, if isNumber
	isNumber bool
	time     time.Time // for createdAt
	rank     int64     // for priority and attempt
}

type field uint8

const (
	fieldName field = iota
	fieldOwner
	fieldPriority
	fieldAttempt
	fieldCreatedAt
	fieldUnique
	fieldBatch
	fieldLabel
	fieldDetail
)

type operator uint8

const (
	equal operator = iota
	unequal
	less
	lessEqual
	greater
	greaterEqual
)

var operatorTexts = [...]string{"=", "!=", "<", "<=", ">", ">="}

func (op operator) holds(order int) bool {
	switch op {
	case equal:
		return order == 0
	case unequal:
		return order != 0
	case less:
		return order < 0
	case lessEqual:
		return order <= 0
	case greater:
		return order > 0
	case greaterEqual:
		return order >= 0
	}
	return false
}

// Empty reports whether everything passes.
func (f *Filter) Empty() bool { return len(f.terms) == 0 }

// NeedsDetails reports whether a job cannot be judged without its details.
func (f *Filter) NeedsDetails() bool {
	for i := range f.terms {
		if f.terms[i].field == fieldDetail {
			return true
		}
	}
	return false
}

// NeedsRare reports whether a job cannot be judged without its unique key and batch.
func (f *Filter) NeedsRare() bool {
	for i := range f.terms {
		if at := f.terms[i].field; at == fieldUnique || at == fieldBatch {
			return true
		}
	}
	return false
}

// Subject is what a filter looks at.
type Subject struct {
	Name      string
	Owner     string
	Priority  job.Priority
	Attempt   int32
	CreatedAt time.Time
	Labels    []job.Label
	Unique    string // the unique key; it and Batch may be left out unless NeedsRare
	Batch     string
}

// Matches reports whether all conditions hold but those on details.
func (f *Filter) Matches(s *Subject) bool {
	for i := range f.terms {
		if t := &f.terms[i]; t.field != fieldDetail && !t.matches(s) {
			return false
		}
	}
	return true
}

// MatchesDetails reports whether the conditions on details hold.
func (f *Filter) MatchesDetails(details []byte) bool {
	for i := range f.terms {
		t := &f.terms[i]
		if t.field != fieldDetail {
			continue
		}
		value, isString, found := jsontext.Lookup(details, t.key)
		if !t.matchesText(string(value), found, !isString) {
			return false
		}
	}
	return true
}

func (t *term) matches(s *Subject) bool {
	switch t.field {
	case fieldName:
		return t.op.holds(strings.Compare(s.Name, t.value))
	case fieldOwner:
		return t.op.holds(strings.Compare(s.Owner, t.value))
	case fieldPriority: // a higher class is greater
		return t.op.holds(cmp.Compare(t.rank, int64(s.Priority)))
	case fieldAttempt:
		return t.op.holds(cmp.Compare(int64(s.Attempt), t.rank))
	case fieldCreatedAt:
		return t.op.holds(s.CreatedAt.Compare(t.time))
	case fieldUnique:
		return t.matchesText(s.Unique, s.Unique != "", false)
	case fieldBatch:
		return t.matchesText(s.Batch, s.Batch != "", false)
	case fieldLabel:
		value, found := Label(s.Labels, t.key)
		return t.matchesText(value, found, false)
	case fieldDetail:
	}
	return false
}

// matchesText compares as numbers where both sides are numbers, else as text. A
// value that is not there is unequal to everything and neither less nor greater
// than anything. A literal is a JSON value that is no string.
func (t *term) matchesText(value string, found, literal bool) bool {
	if !found {
		return t.op == unequal
	}
	if t.isNumber {
		if n, ok := readNumber(value); ok {
			return t.op.holds(n.compare(&t.number))
		}
		if t.op != equal && t.op != unequal {
			return false // text has no place among numbers
		}
	}
	if literal && t.op != equal && t.op != unequal {
		return false
	}
	return t.op.holds(strings.Compare(value, t.value))
}

// Label finds a label among labels sorted by key.
func Label(labels []job.Label, key string) (string, bool) {
	for i := range labels {
		if labels[i].Key == key {
			return labels[i].Value, true
		}
		if labels[i].Key > key {
			break
		}
	}
	return "", false
}
