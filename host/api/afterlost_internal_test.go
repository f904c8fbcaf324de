package api

import (
	"errors"
	"testing"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// codeOf returns the code that a caller is told.
func codeOf(t *testing.T, err error) (code boarddv1.Code_Enum) {
	t.Helper()
	var wire *connect.Error
	if !errors.As(err, &wire) {
		wire = callError(t.Context(), err)
	}
	for _, d := range wire.Details() {
		m, err := d.Value()
		if e, ok := m.(*boarddv1.Error); err == nil && ok {
			code = e.GetCode()
		}
	}
	return code
}

// TestRefusedAfterLost refuses calls as a whole, after an answer that was lost and after none.
func TestRefusedAfterLost(t *testing.T) {
	t.Parallel()
	for kind, want := range map[job.Kind]boarddv1.Code_Enum{
		job.Unavailable: boarddv1.Code_OUTCOME_UNKNOWN, job.QuotaExceeded: boarddv1.Code_OUTCOME_UNKNOWN, job.NotFound: boarddv1.Code_OUTCOME_UNKNOWN,
		job.OutcomeUnknown: boarddv1.Code_OUTCOME_UNKNOWN, job.Interrupted: boarddv1.Code_INTERRUPTED, job.Internal: boarddv1.Code_INTERNAL,
	} {
		for _, err := range []error{job.Errorf(kind, "no"), callError(t.Context(), job.Errorf(kind, "no"))} {
			_, got := afterLost(t.Context(), true, nil, err)
			if code := codeOf(t, got); code != want {
				t.Errorf("%v after a try that was lost: %v, want %v", err, code, want)
			}
			if _, got := afterLost(t.Context(), false, nil, err); got != err {
				t.Errorf("%v after none: %v", err, got)
			}
		}
	}
}

// TestItemsAfterLost refuses items of calls, likewise.
func TestItemsAfterLost(t *testing.T) {
	t.Parallel()
	e := func(code boarddv1.Code_Enum) *boarddv1.Error { return &boarddv1.Error{Code: code, Message: "no"} }
	for code, want := range map[boarddv1.Code_Enum]boarddv1.Code_Enum{
		boarddv1.Code_UNAVAILABLE: boarddv1.Code_OUTCOME_UNKNOWN, boarddv1.Code_QUOTA_EXCEEDED: boarddv1.Code_OUTCOME_UNKNOWN,
		boarddv1.Code_ALREADY_EXISTS: boarddv1.Code_ALREADY_EXISTS, boarddv1.Code_LEASE_LOST: boarddv1.Code_LEASE_LOST,
	} {
		for _, unsure := range []bool{true, false} {
			posts := &boarddv1.PostJobsResponse{Results: []*boarddv1.JobResult{{Job: &boarddv1.Job{Name: "done"}}, {Error: e(code)}}}
			work := &boarddv1.WorkResponse{Ended: []*boarddv1.WorkEnded{{Error: e(code)}}, Extended: []*boarddv1.WorkExtended{{Error: e(code)}, {}}}
			for _, answer := range []connect.AnyResponse{connect.NewResponse(posts), connect.NewResponse(work)} {
				if got, err := afterLost(t.Context(), unsure, answer, nil); err != nil || got != answer {
					t.Errorf("%v, %v", got, err)
				}
			}
			if !unsure {
				want = code
			}
			for _, got := range []*boarddv1.Error{posts.GetResults()[1].GetError(), work.GetEnded()[0].GetError(), work.GetExtended()[0].GetError()} {
				if got.GetCode() != want || unsure && got.GetCode() != code && !got.GetRetryable() {
					t.Errorf("%v with unsure %v: %v, want %v", code, unsure, got, want)
				}
			}
			if posts.GetResults()[0].GetError() != nil || work.GetExtended()[1].GetError() != nil {
				t.Errorf("what was done has an error")
			}
		}
	}
}
