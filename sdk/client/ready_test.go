package client_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// TestReady takes the answers to GET /readyz apart.
func TestReady(t *testing.T) {
	t.Parallel()
	status, text := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/boards/readyz" || r.Header.Get("Authorization") != "" {
			t.Errorf("the server is asked %s %s, with %q", r.Method, r.URL.Path, r.Header.Get("Authorization"))
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	c, err := client.New(client.Config{Addr: server.URL + "/boards/", Token: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		status     int
		text, want string
	}{
		{http.StatusOK, "ready\n", `true ["ready"]`},
		{http.StatusOK, "ready\nthe disk is nearly full\n", `true ["ready" "the disk is nearly full"]`},
		{http.StatusServiceUnavailable, "not ready\nthe server starts\n", `false ["not ready" "the server starts"]`},
		{http.StatusServiceUnavailable, "", `false []`},
		{http.StatusOK, strings.Repeat("a", 64<<10), fmt.Sprintf("true [%q]", strings.Repeat("a", 64<<10))},
		{http.StatusOK, strings.Repeat("a", 64<<10+1), fmt.Sprintf("true [%q]", strings.Repeat("a", 64<<10))},
	} {
		status, text = one.status, one.text
		r, err := c.Ready(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%v %q", r.Ready, r.Lines); got != one.want {
			t.Errorf("%d %.20q: got %.80s, want %.80s", one.status, one.text, got, one.want)
		}
	}
	status = http.StatusNotFound
	if r, err := c.Ready(t.Context()); r != nil || job.KindOf(err) != job.Internal || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("not a boardd: %v, %v", r, err)
	}
	status, text = http.StatusMisdirectedRequest, `{"code":"permission_denied","message":"add the name to hostnames"}`
	if r, err := c.Ready(t.Context()); r != nil || job.KindOf(err) != job.PermissionDenied || !strings.Contains(err.Error(), "add the name to hostnames") {
		t.Errorf("refused: %v, %v", r, err)
	}
	for _, text = range []string{`{"code":"permission_denied"}`, `{"code":"x","message":"y"}`, `{`, "null"} {
		if r, err := c.Ready(t.Context()); r != nil || job.KindOf(err) != job.Internal {
			t.Errorf("%s: %v, %v", text, r, err)
		}
	}
	server.Close()
	if r, err := c.Ready(t.Context()); r != nil || job.KindOf(err) != job.Unavailable {
		t.Errorf("no server: %v, %v", r, err)
	}
}
