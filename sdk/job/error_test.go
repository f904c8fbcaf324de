package job_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/boardd/boardd/sdk/job"
)

// allKinds are the kinds with their names and whether the same request may
// succeed later.
var allKinds = []struct {
	kind  job.Kind
	name  string
	retry bool
}{
	{job.NoKind, "OK", false},
	{job.NotFound, "NOT_FOUND", false},
	{job.AlreadyClaimed, "ALREADY_CLAIMED", false},
	{job.NotClaimed, "NOT_CLAIMED", false},
	{job.NotOwner, "NOT_OWNER", false},
	{job.LeaseLost, "LEASE_LOST", false},
	{job.NotEligible, "NOT_ELIGIBLE", false},
	{job.AlreadyExists, "ALREADY_EXISTS", false},
	{job.QuotaExceeded, "QUOTA_EXCEEDED", true},
	{job.Invalid, "INVALID", false},
	{job.Unavailable, "UNAVAILABLE", true},
	{job.OutcomeUnknown, "OUTCOME_UNKNOWN", true},
	{job.Unauthenticated, "UNAUTHENTICATED", false},
	{job.PermissionDenied, "PERMISSION_DENIED", false},
	{job.Precondition, "FAILED_PRECONDITION", false},
	{job.Aborted, "ABORTED", false},
	{job.Unsupported, "UNSUPPORTED", false},
	{job.Corrupt, "CORRUPT", false},
	{job.Interrupted, "INTERRUPTED", true},
	{job.Internal, "INTERNAL", true},
	{job.Kind(20), "INVALID_KIND", false},
	{job.Kind(255), "INVALID_KIND", false},
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for _, tc := range allKinds {
		if got := tc.kind.String(); got != tc.name {
			t.Errorf("kind %d is called %s, want %s", tc.kind, got, tc.name)
		}
		if got := tc.kind.Error(); got != tc.name {
			t.Errorf("kind %d as an error is %s, want %s", tc.kind, got, tc.name)
		}
		if got := tc.kind.Retryable(); got != tc.retry {
			t.Errorf("%v: retryable %v, want %v", tc.kind, got, tc.retry)
		}
	}
}

func TestErrorIsItsKind(t *testing.T) {
	t.Parallel()
	for _, tc := range allKinds {
		plain := job.Errorf(tc.kind, "no")
		caused := &job.Error{Kind: tc.kind, Err: io.ErrUnexpectedEOF}
		for name, err := range map[string]error{
			"itself": plain, "with a cause": caused,
			"wrapped": fmt.Errorf("a: %w", fmt.Errorf("b: %w", plain)),
			"joined":  errors.Join(io.EOF, plain),
		} {
			if !errors.Is(err, tc.kind) || job.KindOf(err) != tc.kind {
				t.Errorf("%s: %v is not %v but %v", name, err, tc.kind, job.KindOf(err))
			}
			other := job.NotFound
			if tc.kind == other {
				other = job.Invalid
			}
			if errors.Is(err, other) {
				t.Errorf("%s: %v is %v as well", name, err, other)
			}
		}
		if !errors.Is(caused, io.ErrUnexpectedEOF) {
			t.Errorf("%v: the cause is lost", tc.kind)
		}
	}
}

func TestMessageOf(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&job.Error{Op: "post", Kind: job.Invalid, Message: "no name"}, "no name"},
		{fmt.Errorf("x: %w", job.Errorf(job.Invalid, "no name")), "no name"},
		{job.Invalid, job.Invalid.Error()},
		{&job.Error{Kind: job.Invalid}, (&job.Error{Kind: job.Invalid}).Error()},
	} {
		if got := job.MessageOf(tc.err); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.err, got, tc.want)
		}
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	expired, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for _, tc := range []struct {
		name string
		err  error
		want job.Kind
	}{
		{"nil", nil, job.NoKind},
		{"a bare kind", job.LeaseLost, job.LeaseLost},
		{"a wrapped kind", fmt.Errorf("x: %w", job.LeaseLost), job.LeaseLost},
		{"canceled", context.Canceled, job.Interrupted},
		{"past its deadline", expired.Err(), job.Interrupted},
		{"wrapped canceled", fmt.Errorf("x: %w", context.Canceled), job.Interrupted},
		{"a kind goes before its cause", &job.Error{Kind: job.OutcomeUnknown, Err: context.Canceled}, job.OutcomeUnknown},
		{"the outermost kind counts", &job.Error{Kind: job.Unavailable, Err: job.Errorf(job.Corrupt, "x")}, job.Unavailable},
		{"anything else", io.EOF, job.Internal},
	} {
		if got := job.KindOf(tc.err); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	id := job.ID{15: 1}
	for _, tc := range []struct {
		err  *job.Error
		want string
	}{
		{&job.Error{Kind: job.NotFound}, "NOT_FOUND"},
		{job.Errorf(job.Invalid, "name: want %d", 1), "name: want 1"},
		{&job.Error{Op: "claim", Kind: job.NotFound}, "claim: NOT_FOUND"},
		{&job.Error{Job: id, Kind: job.NotFound, Message: "gone"}, "job 00000000-0000-0000-0000-000000000001: gone"},
		{
			&job.Error{Op: "claim", Job: id, Kind: job.Unavailable, Message: "no store", Err: io.EOF},
			"claim: job 00000000-0000-0000-0000-000000000001: no store: EOF",
		},
		{&job.Error{Kind: job.Unavailable, Err: io.EOF}, "UNAVAILABLE: EOF"},
	} {
		if got := tc.err.Error(); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}
