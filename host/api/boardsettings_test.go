package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// settingsOf returns the settings of a board as ListTenantBoards gives them,
// without what every change changes.
func (s *server) settingsOf(t *testing.T, secret, name string) map[string]any {
	t.Helper()
	var list struct{ Boards []map[string]any }
	s.mustAdmin(t, secret, "ListTenantBoards", `{}`, &list)
	for _, b := range list.Boards {
		if b["name"] == name {
			delete(b, "version")
			return b
		}
	}
	t.Fatalf("there is no board %q", name)
	return nil
}

// TestUpdateBoardChangesWhatItNames: each field by itself, by its presence and by
// a mask, and no other.
func TestUpdateBoardChangesWhatItNames(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	s.mustAdmin(t, acmeSecret, "CreateBoard", `{"board":{"name":"b","backend":"store","lease":"40s","maxLease":"600s","fencing":"owner",
		"allowNoExpiry":true,"idempotencyWindow":"120s","history":"3600s","record":"3600s","maxAttempts":7,"backoff":"2s","maxBackoff":"60s",
		"hideDetails":true,"limits":{"open_jobs":"50","claims":"5"},
		"eligibility":[{"policy":"labels","params":{"keys":["gpu"]},"onError":"allow"}],"ordering":{"policy":"aging","params":{"step":"5m"}}}}`, &struct{}{})
	want := s.settingsOf(t, acmeSecret, "b")
	for _, c := range []struct {
		request string         // besides the name
		change  map[string]any // what differs after it
	}{
		{`"board":{"name":"b","lease":"50s"}`, map[string]any{"lease": "50s"}},
		{`"board":{"name":"b"}`, nil},
		{`"board":{"name":"b","allowNoExpiry":false}`, map[string]any{"allowNoExpiry": false}},
		{`"board":{"name":"b","maxAttempts":0}`, map[string]any{"maxAttempts": 0.0}},
		{`"board":{"name":"b","hideDetails":false}`, map[string]any{"hideDetails": false}},
		{`"board":{"name":"b","fencing":"token"}`, map[string]any{"fencing": "token"}},
		{`"board":{"name":"b","limits":{"open_jobs":"60"}}`, map[string]any{"limits": map[string]any{"open_jobs": "60", "claims": "5"}}},
		{`"board":{"name":"b","limits":{"claims":"0"}}`, map[string]any{"limits": map[string]any{"open_jobs": "60"}}},
		{`"board":{"name":"b","history":"7200s"},"updateMask":"lease"`, map[string]any{"lease": "30s"}},
		{`"board":{"name":"b","limits":{"claims":"6"}},"updateMask":"limits.claims"`, map[string]any{"limits": map[string]any{"open_jobs": "60", "claims": "6"}}},
		{`"board":{"name":"b"},"updateMask":"limits.openJobs"`, map[string]any{"limits": map[string]any{"claims": "6"}}},
		{`"board":{"name":"b","limits":{"watchers":"3"}},"updateMask":"limits"`, map[string]any{"limits": map[string]any{"watchers": "3"}}},
		{`"board":{"name":"b"},"updateMask":"eligibility"`, map[string]any{"eligibility": []any{}}},
		{`"board":{"name":"b","backoff":"3s"},"updateMask":"maxBackoff,backoff"`, map[string]any{"backoff": "3s", "maxBackoff": nil}},
		{`"board":{"name":"b","history":"60s"},"updateMask":"*"`, map[string]any{
			"maxLease": "86400s", "idempotencyWindow": "3600s", "history": "60s", "record": nil, "backoff": nil, "limits": map[string]any{}, "ordering": nil,
		}},
	} {
		var answer struct{ Board, Before map[string]any }
		s.mustAdmin(t, acmeSecret, "UpdateBoard", "{"+c.request+"}", &answer)
		delete(answer.Before, "version")
		delete(answer.Board, "version")
		if diff := cmp.Diff(want, answer.Before); diff != "" {
			t.Errorf("%s: before: %s", c.request, diff)
		}
		for field, value := range c.change {
			if want[field] = value; value == nil {
				delete(want, field)
			}
		}
		if diff := cmp.Diff(want, s.settingsOf(t, acmeSecret, "b")); diff != "" {
			t.Fatalf("%s: %s", c.request, diff)
		}
		if diff := cmp.Diff(want, answer.Board); diff != "" {
			t.Errorf("%s: the answer: %s", c.request, diff)
		}
	}
	for request, wrong := range map[string]string{
		`{"board":{"name":"b","lease":"50s"},"updateMask":"leese"}`: `there is no field \"leese\" that can be changed (did you mean \"lease\"?)`,
		`{"board":{"name":"b"},"updateMask":"name"}`:                `there is no field \"name\"`,
		`{"board":{"name":"b"},"updateMask":"limits.none"}`:         `there is no limit \"none\"`,
		`{"board":{"name":"b"},"updateMask":["lease"]}`:             `updateMask: want the names of fields`,
		`{"board":{"name":"b","lease":"0s"}}`:                       `board.lease: want at least 1s, got 0s`,
		`{"board":{"name":"b","maxLease":"0.5s"}}`:                  `board.maxLease: want at least 1s, got 0.5s`,
		`{"board":{"name":"b","idempotencyWindow":"0s"}}`:           `board.idempotencyWindow: want at least 1s, got 0s`,
		`{"board":{"name":"b","record":"0s"}}`:                      `board.record: want at least 60s, got 0s`,
		`{"board":{"name":"b","backoff":"0s"}}`:                     `board.backoff: want at least 0.001s, got 0s`,
		`{"board":{"name":"b","maxLease":"10s"}}`:                   `it is 30s, more than maxLease`,
		`{"board":{"name":"b","mode":"observe"}}`:                   `board.mode: it cannot be changed`,
		`{"board":{"name":"b","backend":"private"}}`:                `moves by MoveBoard alone`,
	} {
		if status, answer := s.admin(t, acmeSecret, "UpdateBoard", request); status != http.StatusBadRequest || !strings.Contains(answer, wrong) {
			t.Errorf("%s: %d %s, want %s", request, status, answer, wrong)
		}
	}
	if diff := cmp.Diff(want, s.settingsOf(t, acmeSecret, "b")); diff != "" {
		t.Errorf("after what was refused: %s", diff)
	}
}

// TestUpdateTenantChangesWhatItNames, likewise.
func TestUpdateTenantChangesWhatItNames(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella","limits":{"boards":"2","claims":"5"}}`, &struct{}{})
	for _, c := range []struct{ request, want string }{
		{`"limits":{"boards":"3"}`, `{"boards":"3","claims":"5"}`},
		{`"limits":{}`, `{"boards":"3","claims":"5"}`},
		{`"limits":{"claims":"0","watchers":"9"}`, `{"boards":"3","watchers":"9"}`},
		{`"limits":{"claims":"4"},"updateMask":"limits"`, `{"claims":"4"}`},
	} {
		var answer struct {
			Tenant struct{ Limits json.RawMessage }
		}
		s.mustAdmin(t, operatorSecret, "UpdateTenant", `{"name":"umbrella",`+c.request+`}`, &answer)
		if got := string(answer.Tenant.Limits); got != c.want {
			t.Errorf("%s: %s, want %s", c.request, got, c.want)
		}
	}
}

// TestGetBoardShowsEverything that was set, and why a board is paused.
func TestGetBoardShowsEverything(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	s.mustAdmin(t, acmeSecret, "CreateBoard", `{"board":{"name":"b","backend":"store","record":"3600s","backoff":"1s","hideDetails":true,
		"limits":{"claims":"5"},"eligibility":[{"policy":"labels","params":{"keys":["gpu"]}}],"ordering":{"policy":"aging","params":{"step":"5m"}}}}`, &struct{}{})
	s.must(t, acmeSecret, "PauseBoard", `{"board":"b","reason":"upgrade"}`, &struct{}{})
	body := s.must(t, acmeSecret, "GetBoard", `{"board":"b"}`, &struct{}{})
	for _, part := range []string{
		`"record":"3600s"`, `"backoff":"1s"`, `"maxBackoff":"3600s"`, `"hideDetails":true`, `"limits":{"claims":"5"}`, `"pauseReason":"upgrade"`,
		`"eligibility":[{"policy":"labels","params":{"keys":["gpu"]}`, `"ordering":{"policy":"aging","params":{"step":"5m"}`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("%s lacks %s", body, part)
		}
	}
	s.must(t, acmeSecret, "ResumeBoard", `{"board":"b"}`, &struct{}{})
	if body := s.must(t, acmeSecret, "GetBoard", `{"board":"b"}`, &struct{}{}); strings.Contains(body, "upgrade") {
		t.Errorf("after the pause: %s", body)
	}
}
