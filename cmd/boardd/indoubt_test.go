package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
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
