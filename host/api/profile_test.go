package api_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/tenant"
)

// TestProfiles: an operator sees them, nobody else does, and who tried is in the
// audit log.
func TestProfiles(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	secrets := map[tenant.Role]string{}
	for _, role := range tenant.Roles() {
		secrets[role] = newToken(t, s, "acme", "m-"+string(role), string(role))
	}
	for role, secret := range secrets {
		want := http.StatusForbidden
		if role == tenant.Operator {
			want = http.StatusOK
		}
		paths := []string{"heap", "profile?seconds=1"} // fewer than the refusals that have records of their own in a second
		if role == tenant.Operator {
			paths = []string{"", "heap", "goroutine?debug=2", "trace?seconds=1"}
		}
		for _, path := range paths {
			if r := s.do(t, http.MethodGet, "/debug/pprof/"+path, secret, ""); r.status != want {
				t.Errorf("%s reads %q: %d %.200s", role, path, r.status, r.body)
			}
		}
	}
	for path, want := range map[string]int{
		"profile?seconds=0": 400, "profile?seconds=61": 400, "trace?seconds=x": 400, "heap?seconds=-1": 400,
		"cmdline": 404, "symbol": 404, "nonesuch": 404, "../../etc/passwd": 404,
	} {
		if r := s.do(t, http.MethodGet, "/debug/pprof/"+path, operatorSecret, ""); r.status != want {
			t.Errorf("%s: %d %.200s, want %d", path, r.status, r.body, want)
		}
	}
	if r := s.do(t, http.MethodPost, "/debug/pprof/heap", operatorSecret, ""); r.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.status)
	}
	if r := s.do(t, http.MethodGet, "/debug/pprof/", "", ""); r.status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", r.status)
	}
	cpu := s.do(t, http.MethodGet, "/debug/pprof/profile?seconds=1", operatorSecret, "")
	zipped, err := gzip.NewReader(strings.NewReader(cpu.body))
	if err != nil {
		t.Fatalf("the profile is none: %d %v %.200s", cpu.status, err, cpu.body)
	}
	if text, err := io.ReadAll(zipped); err != nil || !strings.Contains(string(text), "nanoseconds") {
		t.Errorf("the profile is none: %v", err)
	}
	text := s.mustAdmin(t, operatorSecret, "GetAudit", `{"all":true,"max":1000}`, &struct{}{})
	for _, part := range []string{`"call":"/debug/pprof/heap"`, fmt.Sprintf(`"caller":"m-%s"`, tenant.TenantAdmin)} {
		if !strings.Contains(text, part) {
			t.Errorf("the audit log has no %s", part)
		}
	}
}

// TestRequestNames: a caller may name its request, if the name can stand anywhere.
func TestRequestNames(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for name, ok := range map[string]bool{
		"a": true, "0af7651916cd43dd8448eb211c80319c": true, "A.b_c-1": true, strings.Repeat("x", 64): true,
		strings.Repeat("x", 65): false, "a b": false, "a=b": false, `a"b`: false, "a/b": false, "é": false, "a,b": false,
	} {
		for call, secret := range map[string]string{"WhoAmI": workerSecret, "PurgeJobs": viewerSecret, "Nonesuch": viewerSecret, "CountJobs": "not-the-right-secret"} {
			r := s.do(t, http.MethodPost, rpc+call, secret, `{}`, "X-Request-Id", name)
			got := r.header.Values("X-Request-Id")
			if len(got) != 1 || got[0] == "" || (got[0] == name) != ok {
				t.Errorf("%s named %q: it is called %q", call, name, got)
			}
		}
	}
}
