package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// doubtful is a server that never knows whether it has posted a job, and keeps the uuids.
type doubtful struct {
	ofJob bool // it says so of the job, and not of the call

	mu    sync.Mutex
	uuids []string
}

// ServeHTTP answers as Connect does.
func (d *doubtful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var post boarddv1.PostJobsRequest
	var trigger boarddv1.TriggerScheduleRequest
	uuid := ""
	switch {
	case err != nil:
	case strings.HasSuffix(r.URL.Path, "/PostJobs") && proto.Unmarshal(body, &post) == nil && len(post.GetJobs()) == 1:
		uuid = post.GetJobs()[0].GetUuid()
	case strings.HasSuffix(r.URL.Path, "/TriggerSchedule") && proto.Unmarshal(body, &trigger) == nil:
		uuid = trigger.GetUuid()
	}
	d.mu.Lock()
	d.uuids = append(d.uuids, uuid)
	d.mu.Unlock()
	unknown := &boarddv1.Error{Code: boarddv1.Code_OUTCOME_UNKNOWN, Message: "the store has not answered"}
	if d.ofJob {
		w.Header().Set("Content-Type", "application/proto")
		_, _ = w.Write(marshalled(&boarddv1.PostJobsResponse{Results: []*boarddv1.JobResult{{Error: unknown}}}))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprintf(w, `{"code":"unknown","message":"no","details":[{"type":"boardd.v1.Error","value":%q}]}`, base64.RawStdEncoding.EncodeToString(marshalled(unknown)))
}

func marshalled(m proto.Message) []byte {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

// TestInDoubt: a command that does not know whether it posted a job says with which uuid it is to be
// repeated, and posts under that one then.
func TestInDoubt(t *testing.T) {
	t.Parallel()
	for _, try := range []struct {
		line  string
		ofJob bool
	}{{"job post a", false}, {"job post a", true}, {"schedule trigger nightly", false}} {
		line, d := try.line, &doubtful{ofJob: try.ofJob}
		server := httptest.NewServer(d)
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
