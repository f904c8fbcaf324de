package api_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/host/api"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// waitingCalls is every way to wait for something, by the call. JOB stands for the uuid
// of a job that is claimed, and FROM for a cursor.
var waitingCalls = map[string]string{
	"GetJobs":    `{"board":"default","uuids":["JOB"],"wait":"60s"}`,
	"ListJobs":   `{"board":"default","states":["UNCLAIMED"],"filter":"name = \"nobody posts it\"","wait":"60s"}`,
	"ClaimJobs":  `{"board":"default","owner":"waits","names":["nobody posts it"],"wait":"60s"}`,
	"Work":       `{"board":"default","owner":"waits","names":["nobody posts it"],"max":1,"wait":"60s"}`,
	"ListEvents": `{"board":"default","from":"FROM","wait":"60s"}`,
	"ReadLog":    `{"board":"default","uuid":"JOB","wait":"60s"}`,
	"WatchBoard": `{"board":"default","from":"FROM"}`,
	"GetLog":     `{"board":"default","uuid":"JOB","follow":true}`,
	"GetBatch":   `{"board":"default","name":"several","wait":"60s"}`,
}

// mayWait reports whether a call can be asked to wait: it streams, or its request says
// for how long. Of backups, which are the operator's, a store makes one at a time.
func mayWait(m protoreflect.MethodDescriptor) bool {
	return m.IsStreamingServer() && m.Name() != "BackupBackend" && m.Name() != "ExportBoard" || m.Input().Fields().ByName("wait") != nil
}

// TestEveryCallThatWaitsIsKnown finds a call that waits and that the next test leaves out.
func TestEveryCallThatWaitsIsKnown(t *testing.T) {
	t.Parallel()
	var found []string
	for _, service := range []protoreflect.ServiceDescriptor{
		boarddv1.File_boardd_v1_boardd_proto.Services().ByName("BoardService"),
		boarddv1.File_boardd_v1_admin_proto.Services().ByName("AdminService"),
	} {
		for i := range service.Methods().Len() {
			if m := service.Methods().Get(i); mayWait(m) {
				found = append(found, string(m.Name()))
			}
		}
	}
	for _, name := range found {
		if _, ok := waitingCalls[name]; !ok {
			t.Errorf("%s may wait: add it to waitingCalls", name)
		}
	}
	for name := range waitingCalls {
		if !slices.Contains(found, name) {
			t.Errorf("%s does not wait", name)
		}
	}
}

// TestWaitingCallsLockNobodyOut: a tenant that has more calls waiting than it has seats, of
// one kind or of all, goes on posting, claiming, extending and consuming.
func TestWaitingCallsLockNobodyOut(t *testing.T) {
	t.Parallel()
	var all []string
	for name := range waitingCalls {
		all = append(all, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waitAndWork(t, []string{name}, api.MaxTenantCalls+1)
		})
	}
	t.Run("all", func(t *testing.T) {
		t.Parallel()
		waitAndWork(t, all, api.MaxTenantCalls/2)
	})
}

// waitAndWork has so many of each call wait, and works meanwhile.
func waitAndWork(t *testing.T, calls []string, each int) {
	t.Helper()
	s := serve(t)
	var events struct {
		Cursor string
		Events []struct{ Type string }
	}
	s.must(t, rootSecret, "ListEvents", `{"board":"default"}`, &events)
	post(t, s, "long")
	s.must(t, rootSecret, "PostJobs", `{"board":"default","jobs":[{"name":"part","batch":"several","notBefore":"`+
		time.Now().Add(time.Hour).Format(time.RFC3339)+`"}]}`, nil)
	held := claim(t, s, `{"board":"default","owner":"w","lease":"1800s"}`)
	if len(held) != 1 {
		t.Fatalf("claimed %+v", held)
	}
	for n := 0; n < 3; n += len(events.Events) { // until it was told of all that has happened
		s.must(t, rootSecret, "ListEvents", `{"board":"default","wait":"60s","from":"`+events.Cursor+`"}`, &events)
	}
	fill := strings.NewReplacer("JOB", held[0].UUID, "FROM", events.Cursor)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	for _, call := range calls {
		for range each {
			waiting.Go(func() { s.await(ctx, t, call, fill.Replace(waitingCalls[call])) })
		}
	}
	want := fmt.Sprintf(`boardd_calls{state="waiting"} %d`, each*len(calls))
	eventually(t, "all of them wait", func() bool {
		text := s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body
		return strings.Contains(text, want+"\n") && strings.Contains(text, `boardd_calls{state="working"} 0`)
	})
	post(t, s, "short")
	claims := claim(t, s, `{"board":"default","owner":"w","names":["short"]}`)
	if len(claims) != 1 {
		t.Fatalf("claimed %+v", claims)
	}
	var results wireResults
	s.must(t, rootSecret, "ExtendClaims", `{"board":"default","claims":[`+claims[0].ref()+`],"lease":"600s"}`, &results)
	results.noErrors(t, 1)
	s.must(t, rootSecret, "ConsumeJobs", `{"board":"default","claims":[`+claims[0].ref()+`]}`, &results)
	results.noErrors(t, 1)
}

// await makes a call that waits until ctx ends.
func (s *server) await(ctx context.Context, t *testing.T, call, body string) {
	kind := "application/json"
	if call == "WatchBoard" || call == "GetLog" {
		kind = "application/connect+json"
		body = string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))) + body
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/boardd.v1.BoardService/"+call, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+rootSecret)
	answer, err := s.client.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			t.Errorf("%s: %v", call, err)
		}
		return
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if ctx.Err() == nil && call != "ListEvents" { // which hears of the work
		t.Errorf("%s ended early with %d %s, %v", call, answer.StatusCode, text, err)
	}
}
