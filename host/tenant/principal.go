package tenant

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Principal is who makes a call. It is shared between calls and not changed.
type Principal struct {
	Tenant    string
	TokenName string
	TokenID   string // of a token made through the API; empty: declared in the configuration
	Roles     []Role
	Boards    []string  // the only boards that it may touch; empty: all of its tenant
	Expires   time.Time // zero: never

	// Of somebody whom an identity provider knows: its URL, who that is there, and
	// what tells the tenant from an earlier one of its name. Empty for a token of
	// this server, and the last one for a tenant of the configuration.
	Issuer, Subject, TenantID string

	// home is the tenant that the token belongs to, while it looks at another
	// tenant's boards; empty: it doesn't.
	home string

	life context.Context         //nolint:containedctx // ends with the token; a shared one has no caller to hand it down
	end  context.CancelCauseFunc // nil for a principal that was made without a registry
}

func newPrincipal(t *Token) *Principal {
	p := &Principal{
		Tenant: t.Tenant, TokenName: t.Name, TokenID: t.ID,
		Roles: slices.Clone(t.Roles), Boards: slices.Clone(t.Boards), Expires: t.Expires,
	}
	p.life, p.end = context.WithCancelCause(context.Background())
	return p
}

// Living returns a principal like p that no registry knows: life ends, with the
// reason as its cause, when it lets nobody in any more.
func (p Principal) Living(life context.Context) *Principal {
	p.life = life
	return &p
}

// Life ends, with the reason as its cause, when the token is revoked (Unauthenticated) or
// changed (Unavailable: who asks again is let in with its present rights).
// It does not end by itself when the token expires: see Expires.
func (p *Principal) Life() context.Context {
	if p.life == nil {
		return context.Background()
	}
	return p.life
}

// Expired is the error of a call that outlived its token.
func (p *Principal) Expired() error { return expired(p) }

// Visiting returns the principal that reads the boards of a tenant and can do
// nothing else, as operators and the role Support may for every tenant. Whether
// there is such a tenant is the caller's to check.
func (p *Principal) Visiting(tenant string) (*Principal, error) {
	if !p.Has(Operator) && !p.Has(Support) {
		return nil, job.Errorf(job.PermissionDenied, "token %q has the roles [%s]; looking at a tenant's boards by its name needs one of [%s]",
			p.TokenName, join(p.Roles), join([]Role{Operator, Support}))
	}
	if len(p.Boards) > 0 {
		return nil, job.Errorf(job.PermissionDenied, "token %q is bound to the boards [%s], which are none of another tenant's", p.TokenName, strings.Join(p.Boards, ", "))
	}
	visitor := *p
	visitor.home, visitor.Tenant, visitor.Roles = p.Tenant, tenant, []Role{Viewer}
	return &visitor, nil
}

// Home is the tenant that the token belongs to.
func (p *Principal) Home() string {
	if p.home != "" {
		return p.home
	}
	return p.Tenant
}

// Visits reports whether the principal looks at a tenant's boards by its name.
func (p *Principal) Visits() bool { return p.home != "" }

// Has reports whether one of the principal's roles is the given one. What a
// role allows is May's to say.
func (p *Principal) Has(role Role) bool { return slices.Contains(p.Roles, role) }

// Sees reports whether the principal is bound to no boards, or to this one.
func (p *Principal) Sees(board string) bool {
	return len(p.Boards) == 0 || slices.Contains(p.Boards, board)
}

// May reports whether the principal may make a call, named without its service,
// on a board of its tenant. The board is empty for a call that has none; the
// caller then leaves out of the answer what Sees denies.
func (p *Principal) May(call, board string) bool { return p.Check(call, board) == nil }

// Check is May with the reason: PermissionDenied, naming the roles that would
// do. It does not depend on whether the board exists.
func (p *Principal) Check(call, board string) error {
	allowed := permissions[call]
	if p.home != "" && !slices.Contains(allowed, Viewer) {
		instead := ""
		if len(allowed) > 0 && allowed[0] != Operator {
			instead = fmt.Sprintf("; a token of that tenant may (boardd token create NAME --tenant %s --role %s)", p.Tenant, allowed[0])
		}
		return job.Errorf(job.PermissionDenied, "token %q only looks at the boards of the tenant %q: it may not call %s there%s", p.TokenName, p.Tenant, call, instead)
	}
	if !slices.ContainsFunc(allowed, p.Has) {
		return job.Errorf(job.PermissionDenied, "token %q has the roles [%s]; %s needs one of [%s]",
			p.TokenName, join(p.Roles), call, join(allowed))
	}
	if len(p.Boards) > 0 && slices.Equal(allowed, operators) && !harmless[call] {
		return job.Errorf(job.PermissionDenied, "token %q is bound to the boards [%s]; %s concerns more than boards", p.TokenName, strings.Join(p.Boards, ", "), call)
	}
	if board != "" && !p.Sees(board) {
		return job.Errorf(job.PermissionDenied, "token %q is bound to the boards [%s], and %q is none of them",
			p.TokenName, strings.Join(p.Boards, ", "), Clip(board))
	}
	return nil
}

// CheckAdmin is Check for a call of AdminService on a tenant, which is the
// principal's own where the name is empty. It returns the tenant's name. A
// tenant that the principal may not know of is NotFound, in the same words
// whether there is one of that name or not.
func (p *Principal) CheckAdmin(call, tenant, board string) (string, error) {
	if err := p.Check(call, board); err != nil {
		return "", err
	}
	if len(p.Boards) > 0 && board == "" && !harmless[call] {
		return "", job.Errorf(job.PermissionDenied, "token %q is bound to the boards [%s]; %s concerns the whole tenant",
			p.TokenName, strings.Join(p.Boards, ", "), call)
	}
	if tenant == "" || tenant == p.Tenant {
		return p.Tenant, nil
	}
	if !p.Has(Operator) {
		return "", NoTenant(tenant)
	}
	if len(p.Boards) > 0 {
		return "", job.Errorf(job.PermissionDenied, "token %q is bound to the boards [%s], which are none of another tenant's", p.TokenName, strings.Join(p.Boards, ", "))
	}
	return tenant, nil
}

// NoTenant is the error of a tenant that does not exist, or of which the caller
// may not know that it does.
func NoTenant(name string) error {
	return job.Errorf(job.NotFound, "there is no tenant %q", Clip(name))
}

// MayGrant returns nil if the principal may give a token these roles:
// nobody hands out more than he has, and only operators stand above tenants.
func (p *Principal) MayGrant(roles []Role) error {
	for _, role := range roles {
		if (role == Operator || role == Metrics || role == Support) && !p.Has(Operator) {
			return job.Errorf(job.PermissionDenied, "only an operator may give a token the role %s", role)
		}
	}
	return nil
}

func join(roles []Role) string {
	words := make([]string, len(roles))
	for i, role := range roles {
		words[i] = string(role)
	}
	return strings.Join(words, ", ")
}
