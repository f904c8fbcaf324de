package admin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// secretPrefix begins every secret that boardd makes, so that those who look for
// secrets in the wrong places find it.
const secretPrefix = "boardd_"

// NewToken says what a token is to be.
type NewToken struct {
	Tenant, Name string
	Roles        []string
	Boards       []string
	Expires      time.Time // at most when the token that makes it ends; zero: then
	Outlive      bool      // it may outlive the token that makes it; for operators
}

// Limits on tokens.
const (
	MaxTokenBoards = 100  // boards that a token made through the API is bound to
	MaxTokens      = 1000 // tokens of one tenant in the catalog
)

// CreateToken makes a token and returns its secret, which nobody can read again.
func (s *Session) CreateToken(ctx context.Context, n NewToken) (directory.Token, string, error) {
	t, c, err := s.changing(ctx, "CreateToken", n.Tenant, "")
	if err != nil {
		return directory.Token{}, "", err
	}
	roles, err := s.checkToken(t.Name, n)
	if err != nil {
		return directory.Token{}, "", err
	}
	if n.Expires, err = s.lifetime(n); err != nil {
		return directory.Token{}, "", err
	}
	view := c.View()
	if len(catalog.Of(view.Tokens, t.Name)) >= MaxTokens {
		return directory.Token{}, "", job.Errorf(job.QuotaExceeded, "the tenant %q has %d tokens, which is the most", t.Name, MaxTokens)
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	secret := secretPrefix + base64.RawURLEncoding.EncodeToString(raw[:])
	digest := tenant.DigestOf(secret)
	stale := func(old catalog.Token) bool { return !c.View().Belongs(old.Tenant, old.Owner, t.Declared) }
	made, err := c.CreateToken(ctx, catalog.Token{
		Tenant: t.Name, Name: n.Name, Owner: t.ID, Roles: roles, Boards: n.Boards, Digest: hex.EncodeToString(digest[:]), Expires: n.Expires,
	}, stale)
	if err != nil {
		return directory.Token{}, "", err
	}
	return directory.ShownToken(made), secret, nil
}

// lifetime returns when a new token ends: not after the token that makes it, unless an
// operator asks for that by Outlive.
func (s *Session) lifetime(n NewToken) (time.Time, error) {
	own := s.principal.Expires
	switch {
	case n.Outlive && !s.principal.Has(tenant.Operator):
		return own, job.Errorf(job.PermissionDenied, "outlive: only an operator makes a token that may outlive the one that makes it")
	case own.IsZero() || n.Outlive:
		return n.Expires, nil
	case n.Expires.IsZero() || n.Expires.After(own):
		return own, nil
	}
	return n.Expires, nil
}

// checkToken refuses what cannot be a token of a tenant.
func (s *Session) checkToken(of string, n NewToken) ([]tenant.Role, error) {
	if err := tenant.CheckName(n.Name); err != nil {
		return nil, named("name", err)
	}
	if s.host.Directory().DeclaresToken(of, n.Name) {
		return nil, job.Errorf(job.AlreadyExists, "there is a token %q already, in the server's configuration", n.Name)
	}
	if len(n.Roles) == 0 {
		return nil, job.Errorf(job.Invalid, "roles: want at least one of %s", strings.Join(roleNames(), ", "))
	}
	var roles []tenant.Role
	for _, name := range n.Roles {
		role, err := tenant.ParseRole(tenant.Clip(name))
		if err != nil {
			return nil, named("roles", err)
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	if err := s.principal.MayGrant(roles); err != nil {
		return nil, err
	}
	if len(n.Boards) > MaxTokenBoards {
		return nil, job.Errorf(job.Invalid, "boards: want at most %d, got %d", MaxTokenBoards, len(n.Boards))
	}
	for _, board := range n.Boards {
		if err := tenant.CheckName(board); err != nil {
			return nil, named("boards", err)
		}
	}
	if !n.Expires.IsZero() && !n.Expires.After(time.Now()) {
		return nil, job.Errorf(job.Invalid, "expiresAt: %s is past", n.Expires.UTC().Format(time.RFC3339))
	}
	return roles, nil
}

func roleNames() []string {
	var names []string
	for _, role := range tenant.Roles() {
		names = append(names, string(role))
	}
	return names
}

// Tokens goes through a tenant's tokens whose names come after one, by name, as Tenants does.
func (s *Session) Tokens(of, after string) (iter.Seq[directory.Token], error) {
	t, err := s.listing("ListTokens", of, "")
	if err != nil {
		return nil, err
	}
	return s.host.Directory().Tokens(t.Name, after), nil
}

// RevokeToken takes a token away. What goes on in its name ends.
func (s *Session) RevokeToken(ctx context.Context, of, name string) error {
	t, c, err := s.changing(ctx, "RevokeToken", of, "")
	if err != nil {
		return err
	}
	if s.host.Directory().DeclaresToken(t.Name, name) {
		return declared("token", name)
	}
	if _, ok := c.View().Tokens.Get(catalog.At{Tenant: t.Name, Name: name}); !ok {
		if err := s.host.Lookup(ctx, catalog.Key("token", t.Name, name)); err != nil {
			return err
		}
	}
	view := c.View()
	stored, ok := view.Tokens.Get(catalog.At{Tenant: t.Name, Name: name})
	if !ok || !view.Belongs(t.Name, stored.Owner, t.Declared) {
		return job.Errorf(job.NotFound, "there is no token %q", tenant.Clip(name))
	}
	if err := s.principal.MayGrant(stored.Roles); err != nil {
		return err
	}
	return c.RemoveToken(ctx, stored)
}
