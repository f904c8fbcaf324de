package api_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// silent is a driver that does not answer when jobs are purged.
type silent struct{ driver.Driver }

// Apply breaks the contract.
func (s silent) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	if ops[0].Kind == driver.Purge {
		return nil
	}
	return s.Driver.Apply(ctx, board, ops)
}

// TestEveryLineOfACallNamesIt: those of the board, too.
func TestEveryLineOfACallNamesIt(t *testing.T) {
	t.Parallel()
	var log memory
	broken := memdriver.Program().Wrapped(func(d driver.Driver) driver.Driver { return silent{d} })
	s := serveOn(t, settings(), slog.New(api.LogRequests(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))), broken)
	named := func(name, secret, call, body string) {
		t.Helper()
		r := s.do(t, http.MethodPost, rpc+call, secret, body, "X-Request-Id", name, "Connect-Timeout-Ms", "1000") // by then no answer has come
		if got := r.header.Get("X-Request-Id"); got != name {
			t.Errorf("the answer to %s is named %q", name, got)
		}
	}
	jobs := post(t, s, "a")
	s.must(t, rootSecret, "TrashJobs", `{"board":"default","uuids":["`+jobs[0].UUID+`"]}`, nil)
	named("the-post", posterSecret, "PostJobs", `{"board":"default","jobs":[{"name":"b"}]}`)
	named("the-purge", rootSecret, "PurgeJobs", `{"board":"default","uuids":["`+jobs[0].UUID+`"]}`)
	named("a-denial", viewerSecret, "PurgeJobs", `{"board":"default"}`)
	named("a-refusal", "not-the-right-secret", "PurgeJobs", `{"board":"default"}`)
	said := map[string][]string{}
	for line := range strings.Lines(log.String()) {
		var l struct{ Msg, Request string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if strings.Count(line, `"request":`) > 1 {
			t.Errorf("named twice: %s", line)
		}
		said[l.Request] = append(said[l.Request], l.Msg)
	}
	for name, want := range map[string]string{
		"the-post":  "call",
		"the-purge": "the driver broke its contract: it did not answer each op; call",
		"a-denial":  "refused", "a-refusal": "refused",
	} {
		if got := strings.Join(slices.Compact(said[name]), "; "); got != want {
			t.Errorf("of %s the log says %q, want %q", name, got, want)
		}
	}
}
