package webhook_test

import (
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/job"
)

// TestTries: each try is counted by what came of it, the last one of several that failed as
// given up.
func TestTries(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	h := newStore(t).host("one", r.hook())
	h.ready(r)
	wants := func(want map[string]int64) {
		t.Helper()
		r.until("the tries are counted", func() bool { return maps.Equal(h.tally.Tries(), want) })
	}
	wants(map[string]int64{webhook.Delivered: 0, webhook.Failed: 0, webhook.GivenUp: 0})
	h.consume(h.post("a"))
	wants(map[string]int64{webhook.Delivered: 1, webhook.Failed: 0, webhook.GivenUp: 0})

	r.answering(func(*request) int { return http.StatusBadGateway })
	h.consume(h.post("b"))
	wants(map[string]int64{webhook.Delivered: 1, webhook.Failed: 49, webhook.GivenUp: 1})
	r.until("the delivery was given up", func() bool { return h.hooks.OldestOpen().IsZero() })
	page, err := h.hooks.List(t.Context(), board.ListRequest{States: []job.State{job.Trashed}})
	if err != nil || len(page.Jobs) != 1 {
		t.Errorf("in the trash are %v, %v", page.Jobs, err)
	}

	r.answering(func(*request) int { return http.StatusGone })
	h.consume(h.post("c"))
	wants(map[string]int64{webhook.Delivered: 1, webhook.Failed: 49, webhook.GivenUp: 2})
}

// TestStuck: that nothing can be told is known since it began, until something can, or the
// hook is gone.
func TestStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		hook := webhook.Hook{Board: "jobs", Name: "tell", URL: "https://example.com", Deliveries: "none", Events: []webhook.Kind{webhook.Ended}}
		secrets, err := webhook.ParseSecrets(secret)
		if err != nil {
			t.Fatal(err)
		}
		hook.Secrets = secrets
		began := time.Now()
		h := s.host("one", hook)
		defer h.stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		since := h.tally.Stuck()
		if since.IsZero() || since.Sub(began) > time.Minute {
			t.Fatalf("stuck since %v, want about %v", since, began)
		}
		hook.Deliveries = "hooks"
		h.tells.Set([]webhook.Hook{hook}, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if since := h.tally.Stuck(); !since.IsZero() {
			t.Errorf("stuck since %v, want not at all", since)
		}
		hook.Deliveries = "none"
		h.tells.Set([]webhook.Hook{hook}, nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if h.tally.Stuck().IsZero() {
			t.Error("a hook without a board of its deliveries is not stuck")
		}
		h.tells.Set(nil, nil)
		synctest.Wait()
		if since := h.tally.Stuck(); !since.IsZero() {
			t.Errorf("without a hook it is stuck since %v", since)
		}
	})
}
