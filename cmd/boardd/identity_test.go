package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/boardd/boardd/host/identity/identitytest"
	"github.com/boardd/boardd/internal/testserver"
)

// TestSignedTokens lets somebody in by the command line with a token of an identity
// provider, as a configuration says that an operator wrote.
func TestSignedTokens(t *testing.T) {
	t.Parallel()
	p, k := identitytest.New(t), identitytest.RSA("r")
	p.Set(k)
	path := filepath.Join(t.TempDir(), "boardd.hcl")
	text := fmt.Sprintf(`
audit {
  calls = "all"
}
oidc "corp" {
  issuer       = %q
  audiences    = ["boardd"]
  ca_file      = %q
  tenant_claim = "org"
  name_claim   = "email"
  grant {
    claim = "groups"
    value = "workers"
    roles = ["worker", "poster"]
  }
  grant {
    claim = "groups"
    value = "operators"
    roles = ["operator"]
  }
}
tenant "acme" {}
backend "local" {
  driver = "embedded"
}
board "builds" {
  tenant  = "acme"
  backend = "local"
}
`, p.URL, p.CAFile)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := testserver.Build(t, "./cmd/boardd")
	server := testserver.Start(t, program, "", "--config", path)
	h := &hosting{t: t, program: program, addr: server.Addr}
	as := func(org string, groups ...string) string {
		return k.Sign(t, p.Claims(map[string]any{"org": org, "groups": groups, "email": "alice@example.org"}))
	}
	worker := as("acme", "workers")
	h.must(worker, "", "job", "post", "hello", "--board", "builds")
	if out := h.must(worker, "", "job", "claim", "--owner", "w", "--board", "builds"); !strings.Contains(out, "hello") {
		t.Errorf("claimed: %s", out)
	}
	for what, c := range map[string]struct{ token, want string }{
		"another tenant's":     {as("default", "workers"), `there is no board "builds"`},
		"no tenant at all":     {as("umbrella", "workers"), `there is no tenant "umbrella"`},
		"no group that counts": {as("acme", "others"), "no grant of the issuer corp gives a role"},
		"expired":              {k.Sign(t, p.Claims(map[string]any{"exp": 1_700_000_000})), "it expired at 2023-11-14T22:13:20Z"},
		"signed by another":    {identitytest.ECDSA(t, "r").Sign(t, p.Claims(nil)), "its signature is not by a key of the issuer corp"},
	} {
		out, errs, code := h.boardd(c.token, "", "job", "count", "--board", "builds")
		if code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", what, code, out, errs)
		}
	}
	operator := as("default", "operators")
	audit := h.must(operator, "", "audit", "list", "--all")
	if !strings.Contains(audit, "corp:alice@example.org") {
		t.Errorf("the audit log does not say who it was:\n%s", audit)
	}
	signature := worker[strings.LastIndexByte(worker, '.')+1:]
	if strings.Contains(audit+server.Log(), signature) {
		t.Error("a token is in the audit log or in the server's")
	}
}
