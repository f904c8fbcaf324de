package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// Failures is the error of a call that was carried out but for some of its
// items. It has one place for each item of the request, nil where the item was
// done. errors.Is and errors.As look at every one of them.
type Failures []error

// Error says how many items failed and why, one reason a line.
func (f Failures) Error() string {
	failed := f.Unwrap()
	if len(failed) == 1 {
		return failed[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d failed", len(failed), len(f))
	for i, err := range failed {
		if i == 10 {
			fmt.Fprintf(&b, "\nand %d more", len(failed)-i)
			break
		}
		b.WriteByte('\n')
		b.WriteString(err.Error())
	}
	return b.String()
}

// Unwrap returns the failed items' errors.
func (f Failures) Unwrap() []error {
	var failed []error
	for _, err := range f {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed
}

// Each gives the error of a call on n items as one error for each item: the
// item's own, or that of the whole call for all.
func Each(err error, n int) []error {
	var failures Failures
	if errors.As(err, &failures) && len(failures) == n {
		return failures
	}
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}

// failures collects the errors of n items; it returns nil where there are none.
func failures(op string, n int, item func(i int) (uuid string, e *boarddv1.Error)) error {
	var f Failures
	for i := range n {
		uuid, e := item(i)
		if e == nil {
			continue
		}
		if f == nil {
			f = make(Failures, n)
		}
		f[i] = itemError(op, uuid, e)
	}
	if f == nil {
		return nil // a nil Failures in an error is not nil
	}
	return f
}

var kinds = map[boarddv1.Code_Enum]job.Kind{
	boarddv1.Code_NOT_FOUND: job.NotFound, boarddv1.Code_ALREADY_CLAIMED: job.AlreadyClaimed,
	boarddv1.Code_NOT_CLAIMED: job.NotClaimed, boarddv1.Code_NOT_OWNER: job.NotOwner,
	boarddv1.Code_LEASE_LOST: job.LeaseLost, boarddv1.Code_NOT_ELIGIBLE: job.NotEligible,
	boarddv1.Code_ALREADY_EXISTS: job.AlreadyExists, boarddv1.Code_QUOTA_EXCEEDED: job.QuotaExceeded,
	boarddv1.Code_INVALID: job.Invalid, boarddv1.Code_UNAVAILABLE: job.Unavailable,
	boarddv1.Code_OUTCOME_UNKNOWN: job.OutcomeUnknown, boarddv1.Code_UNAUTHENTICATED: job.Unauthenticated,
	boarddv1.Code_PERMISSION_DENIED: job.PermissionDenied, boarddv1.Code_FAILED_PRECONDITION: job.Precondition,
	boarddv1.Code_ABORTED: job.Aborted, boarddv1.Code_UNSUPPORTED: job.Unsupported,
	boarddv1.Code_CORRUPT: job.Corrupt, boarddv1.Code_INTERRUPTED: job.Interrupted, boarddv1.Code_INTERNAL: job.Internal,
}

// codeKinds is for answers without a detail, such as those of a proxy.
var codeKinds = map[connect.Code]job.Kind{
	connect.CodeCanceled: job.Interrupted, connect.CodeDeadlineExceeded: job.Interrupted,
	connect.CodeInvalidArgument: job.Invalid, connect.CodeOutOfRange: job.Invalid,
	connect.CodeNotFound: job.NotFound, connect.CodeAlreadyExists: job.AlreadyExists,
	connect.CodePermissionDenied: job.PermissionDenied, connect.CodeUnauthenticated: job.Unauthenticated,
	connect.CodeResourceExhausted: job.QuotaExceeded, connect.CodeFailedPrecondition: job.Precondition,
	connect.CodeAborted: job.Aborted, connect.CodeUnimplemented: job.Unsupported,
	connect.CodeUnavailable: job.Unavailable, connect.CodeDataLoss: job.Corrupt,
	connect.CodeInternal: job.Internal, connect.CodeUnknown: job.Internal,
}

func kindOf(code boarddv1.Code_Enum) job.Kind {
	if kind, ok := kinds[code]; ok {
		return kind
	}
	return job.Internal
}

// itemError is the error of one item of a batch.
func itemError(op, uuid string, e *boarddv1.Error) *job.Error {
	id, _ := job.ParseID(uuid) // a uuid that cannot be read stands in the server's message
	return &job.Error{Op: op, Job: id, Kind: kindOf(e.GetCode()), Message: e.GetMessage(), Owner: e.GetOwner()}
}

// gaveUp is the error of a call whose caller did not wait for the answer.
func gaveUp(op string, why error) *job.Error {
	return &job.Error{Op: op, Kind: job.Interrupted, Message: "gave up before the server answered", Err: why}
}

// unsendable is how Connect begins its error about a request that Protocol Buffers do not
// encode, such as one with a text that is not UTF-8. The call was not made then.
const unsendable = "marshal message: "

// callError is the error of a whole call. One that the server never answered
// keeps its cause.
func callError(op string, err error) *job.Error {
	if known, ok := errors.AsType[*job.Error](err); ok {
		return known
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return gaveUp(op, err)
	}
	if never, ok := errors.AsType[*unmade](err); ok {
		return never.told(op)
	}
	var answer *connect.Error
	if !errors.As(err, &answer) {
		return &job.Error{Op: op, Kind: job.Unavailable, Err: err}
	}
	if !connect.IsWireError(err) && cut(err) {
		return &job.Error{Op: op, Kind: job.Unavailable, Message: "the server is not reachable", Err: answer.Unwrap()}
	}
	if text, ok := strings.CutPrefix(answer.Message(), unsendable); ok && !connect.IsWireError(err) {
		return &job.Error{Op: op, Kind: job.Invalid, Message: "the request cannot be sent: " + text}
	}
	kind, ok := codeKinds[answer.Code()]
	if !ok {
		kind = job.Internal
	}
	e := &job.Error{Op: op, Kind: kind, Message: answer.Message()}
	for _, detail := range answer.Details() {
		value, err := detail.Value()
		if err != nil {
			continue
		}
		if d, ok := value.(*boarddv1.Error); ok {
			e.Kind, e.Owner = kindOf(d.GetCode()), d.GetOwner()
			if d.GetMessage() != "" {
				e.Message = d.GetMessage()
			}
			if field := d.GetField(); field != "" && !strings.Contains(e.Message, field) {
				e.Message = field + ": " + e.Message
			}
		}
	}
	return e
}
