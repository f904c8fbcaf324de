package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// shows waits until the metrics have such lines.
func (s *server) shows(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		eventually(t, "the metrics have "+line, func() bool {
			return strings.Contains(s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body, "\n"+line+"\n")
		})
	}
}

// event is the line of the metrics that says how often something was done to jobs.
func event(name string, n int) string {
	return fmt.Sprintf(`boardd_job_events_total{board="default",event=%q,tenant="default"} %d`, name, n)
}

// work makes a call of Work of the owner w.
func (s *server) work(t *testing.T, body string) (answer wireWork) {
	t.Helper()
	s.must(t, workerSecret, "Work", `{"board":"default","owner":"w",`+body+`}`, &answer)
	return answer
}

// TestWorkMetrics: what waits, how it ends, and how much a call does.
func TestWorkMetrics(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.shows(t, `boardd_workers_waiting 0`, `boardd_worker_waits_total{outcome="notice"} 0`, `boardd_worker_items_count{item="claim"} 0`)
	wait := func(body string) func() (int, string) {
		ended := s.during(t, workerSecret, "Work", `{"board":"default","owner":"w","wait":"60s",`+body+`}`)
		s.shows(t, `boardd_workers_waiting 1`)
		return ended
	}
	claiming := wait(`"max":1`)
	post(t, s, "a")
	if status, answer := claiming(); status != http.StatusOK {
		t.Fatal(answer)
	}
	s.shows(t, `boardd_workers_waiting 0`, `boardd_worker_waits_total{outcome="claim"} 1`)
	post(t, s, "b", "c")
	held := s.work(t, `"max":2,"names":["b","c"]`)
	told := wait(`"max":0`)
	s.must(t, rootSecret, "ReleaseJobs", `{"board":"default","uuids":["`+held.Claims[0].UUID+`"],"reason":"by hand"}`, &struct{}{})
	if _, answer := told(); !strings.Contains(answer, `"LOST"`) {
		t.Error(answer)
	}
	if empty := s.work(t, `"max":1,"names":["nobody's"],"wait":"0.01s"`); empty.Idle != "EMPTY" {
		t.Errorf("%+v", empty)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		s.await(ctx, t, "Work", `{"board":"default","owner":"gone","max":1,"names":["nobody's"],"wait":"60s"}`)
	}()
	s.shows(t, `boardd_workers_waiting 1`)
	cancel()
	<-gone
	token := held.tokens()[1]
	s.work(t, `"extend":[{`+token+`}]`)
	s.work(t, `"endings":[{`+token+`,"how":"CONSUME"}]`)
	s.shows(t,
		`boardd_workers_waiting 0`, `boardd_worker_waits_total{outcome="claim"} 1`, `boardd_worker_waits_total{outcome="notice"} 1`,
		`boardd_worker_waits_total{outcome="empty"} 1`, `boardd_worker_waits_total{outcome="ended"} 1`,
		`boardd_worker_items_count{item="ending"} 6`, `boardd_worker_items_sum{item="ending"} 1`, `boardd_worker_items_sum{item="extension"} 1`,
		`boardd_worker_items_sum{item="claim"} 3`, `boardd_worker_items_bucket{item="claim",le="1"} 5`, `boardd_worker_items_sum{item="notice"} 1`,
	)
}

// TestAheadMetrics: what was given ahead, what of it was given back before it had begun,
// and what of that used up no attempt.
func TestAheadMetrics(t *testing.T) {
	t.Parallel()
	s := serve(t)
	post(t, s, "a")
	for n := 1; n <= 3; n++ {
		ahead := s.work(t, `"ahead":1`)
		if len(ahead.Claims) != 1 || !ahead.Claims[0].Ahead {
			t.Fatalf("%+v", ahead)
		}
		s.work(t, `"endings":[{`+ahead.tokens()[0]+`,"how":"ABANDON","retryAfter":"0s"}]`)
		s.shows(t, event("claimed_ahead", n), event("unbegun", n), event("refunded", min(n, 2)))
	}
	begun := s.work(t, `"ahead":1`)
	s.work(t, `"endings":[{`+begun.tokens()[0]+`,"how":"ABANDON","begun":true,"retryAfter":"0s"}]`)
	s.work(t, `"endings":[{`+s.work(t, `"max":1`).tokens()[0]+`,"how":"ABANDON"}]`)
	s.shows(t, event("claimed", 5), event("claimed_ahead", 4), event("abandoned", 5), event("unbegun", 3), event("refunded", 2))
}
