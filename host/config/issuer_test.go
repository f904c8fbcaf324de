package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
)

func TestIssuers(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"b.hcl": `
data_dir = "data"
oidc "corp" {
  issuer       = "https://login.example.org/realms/main"
  audiences    = ["boardd"]
  tenant_claim = "org"
  tenants      = ["acme", "made-later"]
  boards_claim = "boards"
  grant {
    claim = "groups"
    value = "workers"
    roles = ["worker", "poster"]
  }
}
tenant "acme" {
  oidc "own" {
    issuer       = "http://[::1]:8080"
    keys_url     = "http://localhost:8080/keys"
    audiences    = ["a", "b"]
    algorithms   = ["ES256"]
    leeway       = "0s"
    max_lifetime = "1h"
    name_claim   = "email"
    boards       = ["builds"]
    refuse       = ["mallory"]
    grant {
      roles = ["viewer"]
    }
  }
}
`})
	want := []config.Issuer{{
		Name: "corp", URL: "https://login.example.org/realms/main", Audiences: []string{"boardd"}, Algorithms: config.Algorithms,
		Leeway: 30 * time.Second, MaxLifetime: 24 * time.Hour, TenantClaim: "org", Tenants: []string{"acme", "made-later"}, BoardsClaim: "boards",
		Grants: []config.Grant{{Claim: "groups", Value: "workers", Roles: []tenant.Role{"worker", "poster"}}},
	}, {
		Name: "own", URL: "http://[::1]:8080", KeysURL: "http://localhost:8080/keys", Audiences: []string{"a", "b"}, Algorithms: []string{"ES256"},
		MaxLifetime: time.Hour, Tenant: "acme", NameClaim: "email", Boards: []string{"builds"}, Refuse: []string{"mallory"},
		Grants: []config.Grant{{Roles: []tenant.Role{"viewer"}}},
	}}
	if diff := cmp.Diff(want, load(t, config.Source{Paths: []string{dir}}).Issuers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRoots(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"empty.pem": "no certificate\n"})
	for path, want := range map[string]string{dir + "/empty.pem": "has no certificate", dir + "/nowhere.pem": "no such file"} {
		if roots, err := config.Roots(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", path, roots, err, want)
		}
	}
}
