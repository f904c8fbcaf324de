package tenant_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// TestReplace: what is the same in both registries goes on, what is not ends.
func TestReplace(t *testing.T) {
	t.Parallel()
	token := func(name, id string, roles ...tenant.Role) tenant.Token {
		return tenant.Token{Name: name, ID: id, Roles: roles, Digest: tenant.DigestOf(secret + name)}
	}
	access := tenant.NewAccess(registry(t,
		token("same", "1", tenant.Worker), token("gone", "2", tenant.Worker), token("changed", "3", tenant.Worker), token("again", "4", tenant.Worker)))
	lives := map[string]context.Context{}
	for _, name := range []string{"same", "gone", "changed", "again"} {
		p, err := access.Authenticate(secret + name)
		if err != nil {
			t.Fatal(err)
		}
		lives[name] = p.Life() //nolint:fatcontext // each is another token's
	}
	access.Replace(registry(t, token("same", "1", tenant.Worker), token("changed", "3", tenant.Viewer), token("again", "5", tenant.Worker)))
	for name, life := range lives {
		if ended := life.Err() != nil; ended != (name != "same") {
			t.Errorf("the calls of the token %s: ended is %v", name, ended)
		}
		if name != "same" && !errors.Is(context.Cause(life), job.Unauthenticated) {
			t.Errorf("the token %s ended with %v", name, context.Cause(life))
		}
	}
	if _, err := access.Authenticate(secret + "gone"); !errors.Is(err, job.Unauthenticated) {
		t.Errorf("a token that is gone: %v", err)
	}
	if p, err := access.Authenticate(secret + "changed"); err != nil || p.May("ClaimJobs", "a") || p.Life().Err() != nil {
		t.Errorf("a token that was changed: %+v, %v", p, err)
	}
	access.Replace(registry(t))
	if lives["same"].Err() == nil {
		t.Error("a token that outlived one replacement did not end with the next")
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := registry(t, tenant.Token{Name: "brief", Roles: tenant.Roles(), Digest: tenant.DigestOf(secret), Expires: time.Now().Add(time.Minute)})
		time.Sleep(time.Minute - time.Nanosecond)
		if _, err := r.Authenticate(secret); err != nil {
			t.Errorf("before it expires: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := r.Authenticate(secret); !errors.Is(err, job.Unauthenticated) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("after it expired: %v", err)
		}
	})
}

func TestCheckAdmin(t *testing.T) {
	t.Parallel()
	admin := tenant.Principal{Tenant: "acme", TokenName: "root", Roles: []tenant.Role{tenant.TenantAdmin}}
	operator := tenant.Principal{Tenant: "default", TokenName: "op", Roles: []tenant.Role{tenant.Operator}}
	bound := admin
	bound.Boards = []string{"a"}
	for name, c := range map[string]struct {
		who          tenant.Principal
		call, of, on string
		tenant       string
		kind         job.Kind
	}{
		"own, unnamed":         {admin, "CreateToken", "", "", "acme", job.NoKind},
		"own, named":           {admin, "CreateToken", "acme", "", "acme", job.NoKind},
		"another's":            {admin, "CreateToken", "umbrella", "", "", job.NotFound},
		"an operator's call":   {admin, "CreateTenant", "umbrella", "", "", job.PermissionDenied},
		"the same, own":        {admin, "CreateTenant", "acme", "", "", job.PermissionDenied},
		"operator":             {operator, "CreateToken", "umbrella", "", "umbrella", job.NoKind},
		"bound, whole tenant":  {bound, "CreateToken", "", "", "", job.PermissionDenied},
		"bound, its board":     {bound, "UpdateBoard", "", "a", "acme", job.NoKind},
		"bound, another board": {bound, "UpdateBoard", "", "b", "", job.PermissionDenied},
		"bound, harmless":      {bound, "ListBackends", "", "", "acme", job.NoKind},
	} {
		got, err := c.who.CheckAdmin(c.call, c.of, c.on)
		if got != c.tenant || job.KindOf(err) != c.kind {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, err, c.tenant, c.kind)
		}
	}
	for role, ok := range map[tenant.Role]bool{tenant.Worker: true, tenant.TenantAdmin: true, tenant.Operator: false, tenant.Metrics: false} {
		if err := admin.MayGrant([]tenant.Role{role}); (err == nil) != ok {
			t.Errorf("a tenant's admin grants %s: %v", role, err)
		}
		if err := operator.MayGrant([]tenant.Role{role}); err != nil {
			t.Errorf("an operator grants %s: %v", role, err)
		}
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"a": true, "0": true, "a.b_c-d": true, strings.Repeat("a", tenant.MaxNameLength): true,
		"": false, strings.Repeat("a", tenant.MaxNameLength+1): false, "A": false, ".": false, "..": false, ".a": false, "-a": false, "_a": false,
		"a/b": false, "../a": false, "a b": false, "a\n": false, "a\x00": false, "\u0430cme": false, "acme\u200b": false, "a%2fb": false, "é": false,
		strings.Repeat("ж", 200): false,
	} {
		if err := tenant.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v, want ok %v", name, err, ok)
		}
	}
}

// TestRecognize lets in by a certificate, for as long as a token is for it.
func TestRecognize(t *testing.T) {
	t.Parallel()
	machine := tenant.Token{Name: "machine", Tenant: "acme", Roles: []tenant.Role{tenant.Worker}, Certificate: "ci.example.org"}
	access := tenant.NewAccess(registry(t, machine, tenant.Token{Name: "other", Digest: tenant.DigestOf(secret)}))
	p, err := access.Recognize([]string{"spiffe://example.org/x", "ci.example.org"})
	if err != nil || p.Tenant != "acme" || p.TokenName != "machine" {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, names := range [][]string{nil, {""}, {"CI.example.org"}, {"example.org"}} {
		if _, err := access.Recognize(names); !errors.Is(err, job.Unauthenticated) {
			t.Errorf("%q: %v", names, err)
		}
	}
	if _, err := access.Authenticate("ci.example.org"); !errors.Is(err, job.Unauthenticated) {
		t.Errorf("its name is no secret: %v", err)
	}
	access.Replace(registry(t, machine))
	if p.Life().Err() != nil {
		t.Error("a token that stays the same ended")
	}
	access.Replace(registry(t))
	if p.Life().Err() == nil {
		t.Error("a token that is gone did not end")
	}
	twice := machine
	twice.Name = "twice"
	if _, err := tenant.NewRegistry([]tenant.Token{machine, twice}); !errors.Is(err, job.Invalid) {
		t.Errorf("two tokens for one certificate: %v", err)
	}
}
