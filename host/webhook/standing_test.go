package webhook_test

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/webhook"
)

// TestRest: a board of which everything was told may rest until its oldest job has waited for
// too long, and for any time once that was told; not before it is noted that it is well again,
// and not before another hook has begun.
func TestRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{T: t, server: &httptest.Server{URL: "http://127.0.0.1:1"}}
		hook := r.hook()
		hook.Waiting = time.Minute
		hook.Events, hook.Networks = nil, nil
		h := newStore(t).host("one", hook)
		defer h.stop()
		want := func(what string, due time.Time, may bool) {
			t.Helper()
			synctest.Wait()
			r, ok := h.jobs.MayRest(t.Context())
			if !ok {
				t.Fatal("the board does not rest by itself")
			}
			if got, ok := h.tells.Rest(r.Cursor, &r.Counts); ok != may || !got.Equal(due) {
				t.Errorf("%s: rests %v, until %v, want %v, %v", what, ok, got, may, due)
			}
		}
		time.Sleep(10 * time.Second)
		want("nothing waits", time.Time{}, true)
		began := time.Now()
		id := h.post("waits")
		time.Sleep(10 * time.Second)
		want("a job waits", began.Add(time.Minute), true)
		time.Sleep(time.Minute)
		want("that was told", time.Time{}, true)
		h.consume(id)
		want("it waits no longer", time.Time{}, false)
		time.Sleep(10 * time.Second)
		want("that is noted", time.Time{}, true)
		hook.Waiting = time.Hour
		h.tells.Set([]webhook.Hook{hook}, nil)
		if r, ok := h.jobs.MayRest(t.Context()); ok {
			if _, ok = h.tells.Rest(r.Cursor, &r.Counts); ok {
				t.Error("it rests before the other hook has begun")
			}
		}
		time.Sleep(10 * time.Second)
		want("the other one has begun", time.Time{}, true)
	})
}
