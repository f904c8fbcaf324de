package webhook_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// TestPaused: what happens is kept as deliveries while the hook is paused, and is sent in order
// once it goes on; and nobody tries it meanwhile.
func TestPaused(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	hook := r.hook()
	hook.Paused = true
	h := newStore(t).host("one", hook)
	h.ready(r)
	id := h.life("resting")
	r.until("deliveries wait", func() bool {
		counts, err := h.hooks.Count(t.Context())
		return err == nil && counts.Ready == 2
	})
	if _, err := webhook.Try(t.Context(), h.hooks, &hook); job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), "is paused") {
		t.Errorf("it is tried: %v", err)
	}
	if n := r.times(); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
	hook.Paused = false
	h.sends.Set(nil, []webhook.Hook{hook})
	r.until("both are told", func() bool { return len(r.about(id)) == 2 })
	if got := strings.Join(r.about(id), " "); got != "job.trashed job.ended" {
		t.Errorf("told of %s", got)
	}
}

// TestTrial: what came of a trial is known as soon as its job has ended, with the status and the
// first bytes of the answer, in which nothing is left that could do something.
func TestTrial(t *testing.T) {
	t.Parallel()
	wild := "<b>no\x1b[31m\x00\u202e\xff\tway\n"
	r := newReceiver(t)
	status, body := http.StatusOK, "fine"
	r.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
	hook := r.hook()
	h := newStore(t).host("one", hook)
	try := func() webhook.LastTrial {
		t.Helper()
		id, err := webhook.Try(t.Context(), h.hooks, &hook)
		if err != nil {
			t.Fatal(err)
		}
		r.until("it has ended", func() bool {
			results, err := h.hooks.Get(t.Context(), []job.ID{id}, board.GetOptions{})
			return err == nil && results[0].Job != nil && (results[0].Job.State == job.Complete || results[0].Job.State == job.Trashed)
		})
		got, err := webhook.TrialOf(t.Context(), h.hooks, &hook)
		if err != nil || got.ID != id.String() || got.At.IsZero() || got.Took <= 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	if got, err := webhook.TrialOf(t.Context(), h.hooks, &hook); err != nil || got != (webhook.LastTrial{}) {
		t.Errorf("before any: %+v, %v", got, err)
	}
	if got := try(); got.Outcome != webhook.Delivered || got.Status != http.StatusOK || got.Answer != "fine" || got.Reason != "" {
		t.Errorf("%+v", got)
	}
	status, body = http.StatusTeapot, wild+strings.Repeat("x", webhook.MaxAnswer)
	got := try()
	if want := "<b>no\ufffd[31m\ufffd\ufffd\ufffd\tway\n" + strings.Repeat("x", webhook.MaxAnswer-len(wild)); got.Answer != want {
		t.Errorf("the answer is %q, want %q", got.Answer, want)
	}
	if got.Outcome != webhook.GivenUp || got.Status != http.StatusTeapot || !strings.Contains(got.Reason, "418") {
		t.Errorf("%+v", got)
	}
	last, err := webhook.LastOf(t.Context(), h.hooks, &hook)
	if err != nil || last.Outcome != webhook.GivenUp || last.Status != http.StatusTeapot || last.Failing.IsZero() {
		t.Errorf("the last try is %+v, %v", last, err)
	}
	status, body = http.StatusNoContent, ""
	try()
	if last, err := webhook.LastOf(t.Context(), h.hooks, &hook); err != nil || last.Outcome != webhook.Delivered || !last.Failing.IsZero() {
		t.Errorf("the last try is %+v, %v", last, err)
	}
}

// TestTrialOfNobody: a trial that reaches nobody says so, and that there was no answer.
func TestTrialOfNobody(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	r.server.Close()
	hook := r.hook()
	h := newStore(t).host("one", hook)
	id, err := webhook.Try(t.Context(), h.hooks, &hook)
	if err != nil {
		t.Fatal(err)
	}
	var got webhook.LastTrial
	r.until("it was tried", func() bool {
		got, err = webhook.TrialOf(t.Context(), h.hooks, &hook)
		return err != nil || got.ID == id.String()
	})
	if err != nil || got.Outcome != webhook.GivenUp || got.Status != 0 || got.Answer != "" || !strings.Contains(got.Reason, "refused") {
		t.Errorf("%+v, %v", got, err)
	}
}
