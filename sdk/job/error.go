package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Kind says what sort of thing went wrong. A Kind is itself an error, so that
// errors.Is(err, job.NotFound) asks for it. Programs act on an error's kind,
// never on its message.
type Kind uint8

// The kinds that one item of a batch can have. All but OutcomeUnknown say that
// the item changed nothing.
const (
	NoKind         Kind = iota
	NotFound            // never seen, purged, or ended longer ago than the board remembers
	AlreadyClaimed      // somebody else holds the job
	NotClaimed          // nobody holds the job, and the call needs a holder
	NotOwner            // the caller does not hold the job, and never did by this token
	LeaseLost           // the token was good once: its claim ended, or another one began
	NotEligible         // the job may not be claimed now or not by this worker
	AlreadyExists       // another posting has this uuid
	QuotaExceeded       // a limit of the tenant, the board or a policy is reached
	Invalid             // the request is wrong; the message says where and what would be right
	Unavailable         // the store or its driver cannot serve now; nothing was changed
	OutcomeUnknown      // the store did not tell whether the change took effect
)

// The kinds that only a whole call can have. None of them changed anything,
// but for Interrupted and Internal, after which some items may be done.
const (
	Unauthenticated  Kind = iota + 32 // no token, or one that is not known
	PermissionDenied                  // the token's roles do not allow this
	Precondition                      // the board's state or settings forbid this
	Aborted                           // somebody changed it meanwhile: read it again
	Unsupported                       // the store behind this board cannot do this
	Corrupt                           // a record in the store cannot be read
	Interrupted                       // the caller's deadline passed or it went away
	Internal                          // a defect of boardd
)

var kindNames = map[Kind]string{
	NoKind: "OK", NotFound: "NOT_FOUND", AlreadyClaimed: "ALREADY_CLAIMED", NotClaimed: "NOT_CLAIMED",
	NotOwner: "NOT_OWNER", LeaseLost: "LEASE_LOST", NotEligible: "NOT_ELIGIBLE", AlreadyExists: "ALREADY_EXISTS",
	QuotaExceeded: "QUOTA_EXCEEDED", Invalid: "INVALID", Unavailable: "UNAVAILABLE", OutcomeUnknown: "OUTCOME_UNKNOWN",
	Unauthenticated: "UNAUTHENTICATED", PermissionDenied: "PERMISSION_DENIED", Precondition: "FAILED_PRECONDITION",
	Aborted: "ABORTED", Unsupported: "UNSUPPORTED", Corrupt: "CORRUPT", Interrupted: "INTERRUPTED", Internal: "INTERNAL",
}

// String returns the public name.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return "INVALID_KIND"
}

// Error makes a Kind an error that errors.Is can look for.
func (k Kind) Error() string { return k.String() }

// Retryable reports whether the same request may succeed later without a change.
func (k Kind) Retryable() bool {
	switch k {
	case Unavailable, OutcomeUnknown, Interrupted, QuotaExceeded, Internal:
		return true
	default:
		return false
	}
}

// Error is the one error type of boardd: what was being done, to which job,
// what sort of thing went wrong, and the cause. The zero values of Op, Job,
// Owner and Err mean that they are not known.
type Error struct {
	Op      string // the call, such as "claim"
	Job     ID     // the job concerned
	Kind    Kind   // what sort of thing went wrong; never NoKind
	Message string // for people: what was wrong, where, what would be right
	Owner   string // who holds the job, where that is the reason
	Err     error  // the cause; it does not cross to clients
}

// Errorf is a short way to an Error with a kind and a message.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Error returns the whole chain on one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	if e.Job != (ID{}) {
		b.WriteString("job ")
		b.WriteString(e.Job.String())
		b.WriteString(": ")
	}
	switch {
	case e.Message != "":
		b.WriteString(e.Message)
	default:
		b.WriteString(e.Kind.String())
	}
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

// Unwrap gives errors.Is the kind, and the cause where there is one.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// MessageOf returns what an Error in err says of itself, without its op, kind and cause; where
// there is none, or it says nothing, err's whole text. err must not be nil.
func MessageOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Message != "" {
		return e.Message
	}
	return err.Error()
}

// KindOf returns the kind of err: NoKind for nil, Interrupted for the end of a
// context, and Internal for an error that nobody classified.
func KindOf(err error) Kind {
	if err == nil {
		return NoKind
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if k, ok := errors.AsType[Kind](err); ok {
		return k
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Interrupted
	}
	return Internal
}
