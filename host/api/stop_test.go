package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// TestStopReleasesThoseWhoWait has calls that wait for a minute and a stream
// when the server stops. It must not take that minute.
func TestStopReleasesThoseWhoWait(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client := boarddv1connect.NewBoardServiceClient(cleartext2(t), s.url, connect.WithGRPC(), connect.WithInterceptors(bearer(rootSecret)))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	minute := durationpb.New(time.Minute)
	jobs := post(t, s, "a")
	ended := make(chan error, 4)
	go func() {
		_, err := client.ClaimJobs(ctx, connect.NewRequest(&boarddv1.ClaimJobsRequest{Board: "other", Owner: "w", Wait: minute}))
		if connect.CodeOf(err) != connect.CodeUnavailable || !detailOf(err).GetRetryable() {
			t.Errorf("a claim that waited: %v, detail %v", err, detailOf(err))
		}
		ended <- nil
	}()
	go func() {
		r, err := client.GetJobs(ctx, connect.NewRequest(&boarddv1.GetJobsRequest{Board: "default", Uuids: []string{jobs[0].UUID}, Wait: minute}))
		if err != nil || len(r.Msg.GetResults()) != 0 {
			t.Errorf("a reader that waited: %v, %v", r, err)
		}
		ended <- nil
	}()
	go func() {
		r, err := client.ListEvents(ctx, connect.NewRequest(&boarddv1.ListEventsRequest{Board: "other", Wait: minute}))
		if err != nil || r.Msg.GetCursor() == "" {
			t.Errorf("a poll that waited: %v, %v", r, err)
		}
		ended <- nil
	}()
	go func() {
		stream, err := client.WatchBoard(ctx, connect.NewRequest(&boarddv1.WatchBoardRequest{Board: "other"}))
		if err != nil {
			ended <- err
			return
		}
		for stream.Receive() {
			continue
		}
		if connect.CodeOf(stream.Err()) != connect.CodeUnavailable {
			t.Errorf("a stream ended with %v", stream.Err())
		}
		ended <- stream.Close()
	}()
	waitFor(t, func() bool {
		text := s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body
		return strings.Contains(text, "boardd_streams 1") && strings.Contains(text, `boardd_waiting_claims{board="other",tenant="default"} 1`)
	})
	s.stop()
	for range 4 {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			t.Fatal("a call still waits after the server has stopped")
		}
	}
	if r, err := s.client.Get(s.url + "/healthz"); err == nil { // there is nobody to wait for
		_ = r.Body.Close()
		t.Error("the server still answers")
	}
}

// waitFor polls until what is true or a while has passed.
func waitFor(t *testing.T, what func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !what(); {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		time.Sleep(10 * time.Millisecond) // a poll with a deadline
	}
}

// TestCallerWhoHasGoneGetsNoClaim cuts a waiting claim off and posts after it.
func TestCallerWhoHasGoneGetsNoClaim(t *testing.T) {
	t.Parallel()
	s := serve(t)
	client := boarddv1connect.NewBoardServiceClient(s.client, s.url, connect.WithInterceptors(bearer(rootSecret)))
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := client.ClaimJobs(ctx, connect.NewRequest(&boarddv1.ClaimJobsRequest{Board: "default", Owner: "gone", Wait: durationpb.New(time.Minute)}))
		gone <- err
	}()
	waiting := func(n string) func() bool {
		return func() bool {
			text := s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body
			return strings.Contains(text, `boardd_waiting_claims{board="default",tenant="default"} `+n)
		}
	}
	waitFor(t, waiting("1"))
	cancel()
	if err := <-gone; connect.CodeOf(err) != connect.CodeCanceled {
		t.Errorf("the call ended with %v", err)
	}
	waitFor(t, waiting("0"))
	post(t, s, "a")
	if claims := claim(t, s, `{"board":"default","owner":"here"}`); len(claims) != 1 || claims[0].Attempt != 1 {
		t.Errorf("who is there was given %+v", claims)
	}
}
