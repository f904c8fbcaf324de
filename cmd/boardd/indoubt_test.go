package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/client"
)

// doubtful is a server that never knows whether it has posted a job, and keeps the uuids.
type doubtful struct {
	boarddv1connect.UnimplementedBoardServiceHandler

	mu    sync.Mutex
	uuids []string
}

func (d *doubtful) keep(uuid string) *boarddv1.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.uuids = append(d.uuids, uuid)
	return &boarddv1.Error{Code: boarddv1.Code_OUTCOME_UNKNOWN, Message: "the store has not answered"}
}

func (d *doubtful) PostJobs(_ context.Context, r *connect.Request[boarddv1.PostJobsRequest]) (*connect.Response[boarddv1.PostJobsResponse], error) {
	said := d.keep(r.Msg.GetJobs()[0].GetUuid())
	return connect.NewResponse(&boarddv1.PostJobsResponse{Results: []*boarddv1.JobResult{{Error: said}}}), nil
}

func (d *doubtful) TriggerSchedule(_ context.Context, r *connect.Request[boarddv1.TriggerScheduleRequest]) (*connect.Response[boarddv1.TriggerScheduleResponse], error) {
	err := connect.NewError(connect.CodeUnknown, nil)
	if detail, e := connect.NewErrorDetail(d.keep(r.Msg.GetUuid())); e == nil {
		err.AddDetail(detail)
	}
	return nil, err
}

// TestInDoubt: a command that does not know whether it posted a job says with which uuid it is to be
// repeated, and posts under that one then.
func TestInDoubt(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"job post a", "schedule trigger nightly"} {
		var d doubtful
		mux := http.NewServeMux()
		mux.Handle(boarddv1connect.NewBoardServiceHandler(&d))
		server := httptest.NewServer(mux)
		defer server.Close()
		args := append(strings.Fields(line), "--addr", server.URL)
		for range 2 {
			code, _, stderr := runIn(t, nil, "", args...)
			_, uuid, _ := strings.Cut(stderr, "repeat the command with --uuid ")
			uuid, _, _ = strings.Cut(uuid, ",")
			if code != exitUnknown || uuid == "" || !slices.Contains(d.uuids, uuid) {
				t.Fatalf("boardd %s: code %d, %q; the server got %q", line, code, stderr, d.uuids)
			}
			args = append(args, "--uuid", uuid)
		}
		if all := slices.Compact(d.uuids); len(all) != 1 {
			t.Errorf("boardd %s was repeated under other uuids: %q", line, all)
		}
	}
}

// cancelless is a server that cancels nothing, and on which every job is claimed.
type cancelless struct {
	boarddv1connect.UnimplementedBoardServiceHandler

	results []*boarddv1.CancelResult
	err     error
}

func (c *cancelless) CancelJobs(context.Context, *connect.Request[boarddv1.CancelJobsRequest]) (*connect.Response[boarddv1.CancelJobsResponse], error) {
	return connect.NewResponse(&boarddv1.CancelJobsResponse{Results: c.results}), c.err
}

func (c *cancelless) GetJobs(_ context.Context, r *connect.Request[boarddv1.GetJobsRequest]) (*connect.Response[boarddv1.GetJobsResponse], error) {
	answer := &boarddv1.GetJobsResponse{}
	for _, uuid := range r.Msg.GetUuids() {
		answer.Results = append(answer.Results, &boarddv1.JobResult{Job: &boarddv1.Job{Uuid: uuid, State: boarddv1.State_CLAIMED}})
	}
	return connect.NewResponse(answer), nil
}

// TestCancelInDoubt: that a job runs is not the answer where a cancellation failed for another
// reason.
func TestCancelInDoubt(t *testing.T) {
	t.Parallel()
	left := &boarddv1.CancelResult{Message: "the job is in operation"}
	unknown := &boarddv1.CancelResult{Error: &boarddv1.Error{Code: boarddv1.Code_OUTCOME_UNKNOWN, Message: "the store has not answered"}}
	for name, c := range map[string]struct {
		server cancelless
		code   int
		says   string
		forced bool // --force is advised
	}{
		"runs":    {cancelless{results: []*boarddv1.CancelResult{left, left}}, exitRefused, "2 of 2 jobs were not canceled", true},
		"unknown": {cancelless{results: []*boarddv1.CancelResult{unknown, left}}, exitUnknown, "OUTCOME_UNKNOWN: ", false},
		"refused": {cancelless{err: connect.NewError(connect.CodePermissionDenied, errors.New("not with this role"))}, exitRefused, "PERMISSION_DENIED: ", false},
	} {
		mux := http.NewServeMux()
		mux.Handle(boarddv1connect.NewBoardServiceHandler(&c.server))
		server := httptest.NewServer(mux)
		defer server.Close()
		code, _, stderr := runIn(t, nil, "", "job", "cancel", client.NewUUID(), client.NewUUID(), "--addr", server.URL)
		if code != c.code || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "--force") != c.forced {
			t.Errorf("%s: code %d, %q", name, code, stderr)
		}
	}
}
