// Package directory says what there is: the tenants, boards and tokens of a
// configuration together with those of the catalog. What the configuration declares
// goes before what the catalog has under the same name. A record of the catalog counts
// only while the tenant is there that it was made for, and not a later one of its name.
//
// Everything here is computed from two things that do not change, so no locks are held
// and nothing is kept.
package directory

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
)

// CatalogBackend is the embedded store in the data folder that keeps the catalog
// where the configuration names no other. No backend of a configuration can have
// this name.
const CatalogBackend = "_catalog"

// Directory is a configuration and what the catalog held at one moment.
type Directory struct {
	Settings *config.Config
	View     *catalog.View
}

// At names a board of a configuration.
func At(b config.Board) catalog.At { return catalog.At{Tenant: TenantOf(b), Name: b.Name} }

// TenantOf returns whose a board of a configuration is.
func TenantOf(b config.Board) string {
	if b.Tenant == "" {
		return tenant.Default
	}
	return b.Tenant
}

// Backend returns what the configuration says of a backend.
func (d Directory) Backend(name string) (config.Backend, bool) {
	if i := slices.IndexFunc(d.Settings.Backends, func(c config.Backend) bool { return c.Name == name }); i >= 0 {
		return d.Settings.Backends[i], true
	}
	if name == CatalogBackend {
		return config.Backend{Name: CatalogBackend, Driver: "embedded", Settings: []byte("{}")}, true
	}
	return config.Backend{}, false
}

// Grants reports whether a backend is open to boards that a tenant makes.
func (d Directory) Grants(backend, tenant string) bool {
	c, ok := d.Backend(backend)
	return ok && c.Grants(tenant)
}

// Tenant is a tenant of the configuration or of the catalog.
type Tenant struct {
	catalog.Tenant

	Declared bool // in the configuration: it cannot be changed through the API
}

// Declared returns the tenants of the configuration.
func (d Directory) Declared() []string {
	names := d.Settings.Tenants
	if !slices.Contains(names, tenant.Default) {
		names = append(slices.Clone(names), tenant.Default)
	}
	for _, b := range d.Settings.Boards {
		if of := TenantOf(b); !slices.Contains(names, of) {
			names = append(slices.Clone(names), of)
		}
	}
	return names
}

// Declares reports whether the configuration has a tenant.
func (d Directory) Declares(name string) bool {
	return name == tenant.Default || slices.Contains(d.Settings.Tenants, name) ||
		slices.ContainsFunc(d.Settings.Boards, func(b config.Board) bool { return TenantOf(b) == name })
}

// Tenant returns a tenant that there is, if only to be purged.
func (d Directory) Tenant(name string) (Tenant, error) {
	if d.Declares(name) {
		return Tenant{Tenant: catalog.Tenant{Name: name, Limits: d.Settings.Limits[name]}, Declared: true}, nil
	}
	if t, ok := d.View.Tenants.Get(name); ok {
		return Tenant{Tenant: t}, nil
	}
	return Tenant{}, tenant.NoTenant(name)
}

// Tenants goes through the tenants whose names come after one, by name.
func (d Directory) Tenants(after string) iter.Seq[Tenant] {
	var declared []Tenant
	for _, name := range d.Declared() {
		declared = append(declared, Tenant{Tenant: catalog.Tenant{Name: name, Limits: d.Settings.Limits[name]}, Declared: true})
	}
	return merged(declared, after, func(t Tenant) string { return t.Name }, func(yield func(Tenant) bool) {
		for _, t := range d.View.Tenants.After(after) {
			if !yield(Tenant{Tenant: t}) {
				return
			}
		}
	})
}

// merged goes through what the configuration declares and comes after a name, and what the
// catalog has after it, by name: of two that have one name, through what is declared. Of the
// catalog only so much is looked at as is gone through.
func merged[T any](declared []T, after string, name func(T) string, stored iter.Seq[T]) iter.Seq[T] {
	declared = slices.DeleteFunc(declared, func(one T) bool { return name(one) <= after })
	slices.SortFunc(declared, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return func(yield func(T) bool) {
		left := declared
		for one := range stored {
			for len(left) > 0 && name(left[0]) < name(one) {
				if !yield(left[0]) {
					return
				}
				left = left[1:]
			}
			if len(left) > 0 && name(left[0]) == name(one) {
				continue
			}
			if !yield(one) {
				return
			}
		}
		for _, one := range left {
			if !yield(one) {
				return
			}
		}
	}
}

// Limits returns the limits of a tenant, defaults included.
func (d Directory) Limits(name string) config.Limits {
	if d.Declares(name) {
		return d.Settings.Limits[name].WithDefaults()
	}
	t, _ := d.View.Tenants.Get(name)
	return t.Limits.WithDefaults()
}

// belongs reports whether a record of the catalog counts.
func (d Directory) belongs(name, owner string) bool {
	return d.View.Belongs(name, owner, d.Declares(name))
}

// Token is a token of the configuration or of the catalog, without its secret.
type Token struct {
	Tenant, Name string
	Roles        []tenant.Role
	Boards       []string
	Made         time.Time
	Expires      time.Time // zero: never
	Declared     bool
}

// ShownToken returns a token of the catalog as it is shown.
func ShownToken(t catalog.Token) Token {
	return Token{Tenant: t.Tenant, Name: t.Name, Roles: t.Roles, Boards: t.Boards, Made: t.Made, Expires: t.Expires}
}

// DeclaresToken reports whether the configuration has a token.
func (d Directory) DeclaresToken(of, name string) bool {
	return slices.ContainsFunc(d.declaredTokens(of), func(t Token) bool { return t.Name == name })
}

func (d Directory) declaredTokens(of string) []Token {
	var list []Token
	for _, t := range d.Settings.Tokens {
		if t.Tenant == of || t.Tenant == "" && of == tenant.Default {
			list = append(list, Token{Tenant: of, Name: t.Name, Roles: t.Roles, Boards: t.Boards, Expires: t.Expires, Declared: true})
		}
	}
	return list
}

// Tokens goes through a tenant's tokens whose names come after one, by name.
func (d Directory) Tokens(of, after string) iter.Seq[Token] {
	declares := d.Declares(of)
	return merged(d.declaredTokens(of), after, func(t Token) string { return t.Name }, func(yield func(Token) bool) {
		for t := range catalog.After(d.View.Tokens, of, after) {
			if d.View.Belongs(of, t.Owner, declares) && !yield(ShownToken(t)) {
				return
			}
		}
	})
}

// Credentials returns the tokens by which somebody is let in.
func (d Directory) Credentials() []tenant.Token {
	tokens := slices.Clone(d.Settings.Tokens)
	names, digests := map[catalog.At]bool{}, map[tenant.Digest]bool{}
	for _, t := range tokens {
		if t.Tenant == "" {
			t.Tenant = tenant.Default
		}
		names[catalog.At{Tenant: t.Tenant, Name: t.Name}], digests[t.Digest] = true, true
	}
	for at, t := range d.View.Tokens.All() {
		access, ok := t.Access()
		if !ok || names[at] || digests[access.Digest] || !d.belongs(t.Tenant, t.Owner) {
			continue
		}
		names[at], digests[access.Digest] = true, true
		tokens = append(tokens, access)
	}
	return tokens
}

// CredentialsOf returns those of one tenant.
func (d Directory) CredentialsOf(of string) []tenant.Token {
	var tokens []tenant.Token
	names := map[string]bool{}
	for _, t := range d.Settings.Tokens {
		if t.Tenant == of || t.Tenant == "" && of == tenant.Default {
			t.Tenant = of
			tokens, names[t.Name] = append(tokens, t), true
		}
	}
	for _, t := range catalog.Of(d.View.Tokens, of) {
		if access, ok := t.Access(); ok && !names[t.Name] && d.belongs(of, t.Owner) {
			tokens = append(tokens, access)
		}
	}
	return tokens
}

// Policies returns the policies that a tenant put, by name.
func (d Directory) Policies(of string) []catalog.Policy {
	return slices.DeleteFunc(catalog.Of(d.View.Policies, of), func(p catalog.Policy) bool { return !d.belongs(of, p.Owner) })
}
