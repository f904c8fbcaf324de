package tenant_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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
		want := job.Unauthenticated
		if name == "changed" { // its holder asks again, and may do what it may now
			want = job.Unavailable
		}
		if name != "same" && !errors.Is(context.Cause(life), want) {
			t.Errorf("the token %s ended with %v, want %v", name, context.Cause(life), want)
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
	boundOperator := operator
	boundOperator.Boards = []string{"a"}
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

		"bound operator, its board":              {boundOperator, "DeleteBoard", "", "a", "default", job.NoKind},
		"bound operator, another's of that name": {boundOperator, "DeleteBoard", "acme", "a", "", job.PermissionDenied},
		"bound operator, operators' call":        {boundOperator, "CreateTenant", "acme", "", "", job.PermissionDenied},
		"bound operator, harmless":               {boundOperator, "ListServers", "", "", "default", job.NoKind},
	} {
		got, err := c.who.CheckAdmin(c.call, c.of, c.on)
		if got != c.tenant || job.KindOf(err) != c.kind {
			t.Errorf("%s: got %q, %v; want %q, %v", name, got, err, c.tenant, c.kind)
		}
	}
	for _, call := range []string{"BackupBackend", "ReleasePlace", "ReloadConfig", "DrainServer", "DeleteTenant", "ListPlaces"} {
		if err := boundOperator.Check(call, ""); job.KindOf(err) != job.PermissionDenied {
			t.Errorf("an operator who is bound to a board calls %s: %v", call, err)
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

// TestAmend changes the tokens of tenants at random, one tenant at a time, beside a registry
// that is made anew each time: both let in the same, and the calls of the same tokens end.
func TestAmend(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(rand.Uint64(), 3))
	amended, replaced := tenant.NewAccess(registry(t)), tenant.NewAccess(registry(t))
	of := map[string][]tenant.Token{}
	secrets := map[string]bool{}
	for range 300 {
		name := fmt.Sprintf("tenant %d", random.IntN(4))
		var tokens []tenant.Token
		for i := range random.IntN(6) {
			id := fmt.Sprint(random.IntN(3))
			token := tenant.Token{Tenant: name, Name: fmt.Sprint(i), ID: id, Roles: []tenant.Role{tenant.Worker}}
			if random.IntN(4) == 0 {
				token.Roles[0] = tenant.Viewer
			}
			s := secret + name + fmt.Sprint(i) + id
			token.Digest, secrets[s] = tenant.DigestOf(s), true
			tokens = append(tokens, token)
		}
		of[name] = tokens
		lives := map[string][2]*tenant.Principal{}
		for s := range secrets {
			p, err := amended.Authenticate(s)
			q, otherErr := replaced.Authenticate(s)
			if (err == nil) != (otherErr == nil) || err == nil && (p.Tenant != q.Tenant || p.TokenName != q.TokenName || !slices.Equal(p.Roles, q.Roles)) {
				t.Fatalf("%q: %+v, %v; a registry made anew says %+v, %v", s, p, err, q, otherErr)
			}
			if err == nil {
				lives[s] = [2]*tenant.Principal{p, q}
			}
		}
		var all []tenant.Token
		for _, list := range of {
			all = append(all, list...)
		}
		if err := amended.Amend(name, tokens); err != nil {
			t.Fatal(err)
		}
		replaced.Replace(registry(t, all...))
		for s, p := range lives {
			if (p[0].Life().Err() == nil) != (p[1].Life().Err() == nil) {
				t.Fatalf("the calls of %q ended: %v; with a registry made anew: %v", s, p[0].Life().Err(), p[1].Life().Err())
			}
		}
	}
	// What a registry refuses is left out, and holds nobody else up.
	same := tenant.DigestOf("the same secret of two tokens")
	err := amended.Amend("tenant 0", []tenant.Token{
		{Tenant: "tenant 0", Name: "a", Digest: same, Roles: []tenant.Role{tenant.Worker}},
		{Tenant: "tenant 0", Name: "b", Digest: same, Roles: []tenant.Role{tenant.Worker}},
		{Tenant: "tenant 0", Name: "c", Digest: tenant.DigestOf("another secret altogether"), Roles: []tenant.Role{tenant.Worker}},
	})
	if err == nil || !strings.Contains(err.Error(), "same secret") {
		t.Errorf("two tokens with one secret: %v", err)
	}
	if p, err := amended.Authenticate("another secret altogether"); err != nil || p.TokenName != "c" {
		t.Errorf("the token beside them: %v", err)
	}
}
