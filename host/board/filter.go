package board

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// filter is a parsed filter: conditions that must all hold. The zero filter
// lets everything pass.
type filter struct {
	text  string // in a canonical form; empty for none
	terms []term
}

// term is one condition.
type term struct {
	field    field
	key      string // of labels.K and details.K
	op       operator
	value    string
	number   float64 // value as a number, if isNumber
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

// needsDetails reports whether a job cannot be judged without its details.
func (f *filter) needsDetails() bool {
	for i := range f.terms {
		if f.terms[i].field == fieldDetail {
			return true
		}
	}
	return false
}

// subject is what a filter looks at.
type subject struct {
	name      string
	owner     string
	priority  job.Priority
	attempt   int32
	createdAt time.Time
	labels    []job.Label
}

// matches reports whether all conditions hold but those on details.
func (f *filter) matches(s *subject) bool {
	for i := range f.terms {
		if t := &f.terms[i]; t.field != fieldDetail && !t.matches(s) {
			return false
		}
	}
	return true
}

// matchesDetails reports whether the conditions on details hold.
func (f *filter) matchesDetails(details []byte) bool {
	for i := range f.terms {
		t := &f.terms[i]
		if t.field != fieldDetail {
			continue
		}
		value, isString, found := lookup(details, t.key)
		if !t.matchesText(string(value), found, !isString) {
			return false
		}
	}
	return true
}

func (t *term) matches(s *subject) bool {
	switch t.field {
	case fieldName:
		return t.op.holds(strings.Compare(s.name, t.value))
	case fieldOwner:
		return t.op.holds(strings.Compare(s.owner, t.value))
	case fieldPriority: // a higher class is greater
		return t.op.holds(cmp.Compare(t.rank, int64(s.priority)))
	case fieldAttempt:
		return t.op.holds(cmp.Compare(int64(s.attempt), t.rank))
	case fieldCreatedAt:
		return t.op.holds(s.createdAt.Compare(t.time))
	case fieldLabel:
		value, found := label(s.labels, t.key)
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
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			return t.op.holds(cmp.Compare(n, t.number))
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

// label finds a label among labels sorted by key.
func label(labels []job.Label, key string) (string, bool) {
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
