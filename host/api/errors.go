package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/board"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// fieldError is an error about a field of the request, named as in JSON.
type fieldError struct {
	path string
	err  error
}

// Error returns the error's own text, which names the field where that helps.
func (e *fieldError) Error() string { return e.err.Error() }

// Unwrap returns the error without the field.
func (e *fieldError) Unwrap() error { return e.err }

// invalid is the error of a wrong field.
func invalid(path, format string, args ...any) error {
	return &fieldError{path: path, err: job.Errorf(job.Invalid, "%s: %s", path, fmt.Sprintf(format, args...))}
}

// inField is an error of invalid's, of a field that lies within another one; else it is err.
func inField(path string, err error) error {
	var field *fieldError
	var text *job.Error
	if !errors.As(err, &field) || !errors.As(err, &text) {
		return err
	}
	return &fieldError{path: path + "." + field.path, err: job.Errorf(text.Kind, "%s.%s", path, text.Message)}
}

// itemCode is the code that one item of a batch may have. Every other kind
// concerns the whole call, and an item that has one nevertheless gets what says
// the same of its effect.
func itemCode(kind job.Kind) boarddv1.Code_Enum {
	switch kind { //exhaustive:enforce
	case job.NoKind, job.NotFound, job.AlreadyClaimed, job.NotClaimed, job.NotOwner, job.LeaseLost, job.NotEligible,
		job.AlreadyExists, job.QuotaExceeded, job.Invalid, job.Unavailable, job.OutcomeUnknown:
		return boarddv1.Code_Enum(kind) // the two count alike, and a test says so
	case job.Precondition, job.Aborted, job.Unsupported, job.PermissionDenied, job.Unauthenticated:
		return boarddv1.Code_INVALID
	case job.Corrupt:
		return boarddv1.Code_CORRUPT
	case job.Interrupted, job.Internal:
		return boarddv1.Code_OUTCOME_UNKNOWN
	}
	return boarddv1.Code_OUTCOME_UNKNOWN
}

// turnedAway is the error of a whole call: err, or that of its items where each was refused since
// the board moves. Who hears it of the whole call comes again until the board is in its new store.
func turnedAway[T any](items []T, err error, failed func(T) error) error {
	if err != nil || len(items) == 0 {
		return err
	}
	for _, item := range items {
		if !board.TurnedAway(failed(item)) {
			return nil
		}
	}
	return failed(items[0])
}

// whole is a board's answer to a call on some jobs, with the error that the whole call has.
func whole(errs []error, err error) ([]error, error) {
	return errs, turnedAway(errs, err, func(err error) error { return err })
}

// itemError is the answer about one item, nil for nil.
func itemError(err error) *boarddv1.Error {
	if err == nil {
		return nil
	}
	kind := job.KindOf(err)
	answer := describe(itemCode(kind), kind, err)
	if e, ok := errors.AsType[*job.Error](err); ok && kind == job.Corrupt && e.Message != "" {
		answer.Message = clean(e.Message) // it is about the caller's own board
	}
	return answer
}

func describe(code boarddv1.Code_Enum, kind job.Kind, err error) *boarddv1.Error {
	answer := &boarddv1.Error{Code: code, Message: messageOf(kind, err), Retryable: kind.Retryable()}
	var field *fieldError
	switch {
	case errors.As(err, &field):
		answer.Field = clean(field.path)
	case kind == job.Invalid:
		answer.Field = fieldOf(answer.GetMessage())
	}
	if e, ok := errors.AsType[*job.Error](err); ok {
		answer.Owner = clean(e.Owner)
	}
	return answer
}

// fieldOf returns the field with which the message of a board begins, or "".
func fieldOf(message string) string {
	path, _, ok := strings.Cut(message, ": ")
	if !ok || strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.[]") != "" {
		return ""
	}
	return path
}

// messageOf returns what may be said to a client: the outermost message that
// was written for one, never a cause.
func messageOf(kind job.Kind, err error) string {
	if kind == job.Internal || kind == job.Corrupt {
		return generic(kind)
	}
	var e *job.Error
	for rest := err; errors.As(rest, &e); rest = e.Err {
		if e.Message != "" {
			return clean(e.Message)
		}
	}
	return generic(kind)
}

// generic is the message of an error that brought none.
func generic(kind job.Kind) string {
	switch kind {
	case job.NotFound:
		return "there is no such job"
	case job.AlreadyClaimed:
		return "somebody else holds the job"
	case job.NotClaimed:
		return "nobody holds the job"
	case job.NotOwner:
		return "the caller does not hold the job"
	case job.LeaseLost:
		return "the claim has ended"
	case job.NotEligible:
		return "the job may not be claimed now"
	case job.AlreadyExists:
		return "another posting has this uuid"
	case job.QuotaExceeded:
		return "a limit is reached"
	case job.Unavailable:
		return "the board's store cannot be reached now; nothing was changed"
	case job.OutcomeUnknown:
		return "the store did not tell whether the change took effect"
	case job.Interrupted:
		return "the call was ended before it was done; some of it may be done"
	case job.Corrupt:
		return "a record in the store cannot be read; the server's log says which"
	case job.Unsupported:
		return "the store behind this board cannot do this"
	case job.Aborted:
		return "somebody changed it meanwhile: read it again"
	case job.Internal:
		return "a defect of the server; its log has more under the request id in the header X-Request-Id"
	}
	return strings.ToLower(strings.ReplaceAll(kind.String(), "_", " "))
}

var connectCodes = map[job.Kind]connect.Code{
	job.NotFound: connect.CodeNotFound, job.AlreadyExists: connect.CodeAlreadyExists,
	job.QuotaExceeded: connect.CodeResourceExhausted, job.Invalid: connect.CodeInvalidArgument,
	job.Unavailable: connect.CodeUnavailable, job.OutcomeUnknown: connect.CodeUnavailable,
	job.Unauthenticated: connect.CodeUnauthenticated, job.PermissionDenied: connect.CodePermissionDenied,
	job.Precondition: connect.CodeFailedPrecondition, job.Aborted: connect.CodeAborted,
	job.Unsupported: connect.CodeUnimplemented, job.Interrupted: connect.CodeCanceled,
	job.AlreadyClaimed: connect.CodeFailedPrecondition, job.NotClaimed: connect.CodeFailedPrecondition,
	job.NotOwner: connect.CodeFailedPrecondition, job.LeaseLost: connect.CodeFailedPrecondition,
	job.NotEligible: connect.CodeFailedPrecondition,
}

// callError is the answer to a call that fails as a whole.
func callError(ctx context.Context, err error) *connect.Error {
	kind := job.KindOf(err)
	code, ok := connectCodes[kind]
	if !ok {
		code = connect.CodeInternal
	}
	if kind == job.Interrupted && (errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		code = connect.CodeDeadlineExceeded
	}
	detail := describe(boarddv1.Code_Enum(boarddv1.Code_Enum_value[kind.String()]), kind, err)
	answer := connect.NewError(code, errors.New(detail.GetMessage()))
	if d, err := connect.NewErrorDetail(detail); err == nil {
		answer.AddDetail(d)
	}
	if code == connect.CodeResourceExhausted {
		answer.Meta().Set("Retry-After", "1")
	}
	return answer
}

// clean makes a text of a store or a stranger fit for a message.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
