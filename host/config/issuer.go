package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/nearest"
)

// Issuer is an identity provider whose signed tokens let somebody in.
type Issuer struct {
	Name        string
	URL         string // as it is in the claim iss
	Audiences   []string
	KeysURL     string // empty: the provider's discovery document says where its keys are
	CAFile      string // empty: the system's roots
	Algorithms  []string
	Leeway      time.Duration // by which clocks may differ
	MaxLifetime time.Duration // of a token, from now

	Tenant      string   // in whose name its tokens speak; empty: TenantClaim says
	TenantClaim string   //
	Tenants     []string // the only ones that TenantClaim may name; empty: any
	Boards      []string // the only boards that its tokens may touch; empty: all
	BoardsClaim string   // in place of Boards
	NameClaim   string   // what people are called; empty: their subject
	Refuse      []string // subjects that are not let in
	Grants      []Grant
}

// Grant is what a token may do that has a claim with a value.
type Grant struct {
	Claim, Value string // empty: every token of the issuer
	Roles        []tenant.Role
}

// Algorithms are those by which a token may be signed: each has a private key that
// only the issuer has.
var Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// How far the clocks of an issuer and of this server may be apart, and how long a
// token may be good that nobody can revoke one by one.
const (
	DefaultLeeway      = 30 * time.Second
	MaxLeeway          = 5 * time.Minute
	DefaultMaxLifetime = 24 * time.Hour
)

// issuerPlace is where an issuer of a file stands.
type issuerPlace struct {
	section *section
	own     bool // within a tenant
}

// issuer reads an oidc block, outside of all blocks or, with own, of a tenant.
func (l *loader) issuer(s *section, of string, own bool) {
	i := Issuer{Name: s.label, Tenant: of, Leeway: DefaultLeeway, MaxLifetime: DefaultMaxLifetime}
	var ok bool
	if i.URL, ok = s.text("issuer"); !ok && !s.has("issuer") {
		s.wrong("issuer", "it is missing; want the URL that stands in the claim iss of its tokens")
	} else if ok {
		s.web("issuer", i.URL)
	}
	if i.Audiences, ok = s.texts("audiences"); !s.has("audiences") || ok && (len(i.Audiences) == 0 || slices.Contains(i.Audiences, "")) {
		s.wrong("audiences", "want at least one text that stands in the claim aud of tokens for this server, and for no other")
	}
	if i.KeysURL, ok = s.text("keys_url"); ok {
		s.web("keys_url", i.KeysURL)
	}
	i.CAFile = l.certificate(s, "ca_file", false)
	i.Algorithms = s.algorithms()
	if d, ok := s.duration("leeway", 0, MaxLeeway); ok {
		i.Leeway = d
	}
	if d, ok := s.duration("max_lifetime", time.Minute, MaxWindow); ok {
		i.MaxLifetime = d
	}
	i.NameClaim = s.claim("name_claim")
	i.Refuse, _ = s.texts("refuse")
	s.scope(&i, own)
	for _, inner := range s.several("grant") {
		i.Grants = append(i.Grants, inner.grant(own))
		inner.close("oidc", of+"/"+s.label, "grant")
	}
	if len(i.Grants) == 0 {
		s.wrong("grant", "want at least one grant block, or nobody is let in")
	}
	l.config.Issuers = append(l.config.Issuers, i)
	l.issuers = append(l.issuers, issuerPlace{section: s, own: own})
	s.close("oidc", of+"/"+s.label)
}

// scope reads in whose name the tokens speak, and which boards they may touch.
func (s *section) scope(i *Issuer, own bool) {
	if !own {
		if claim := s.claim("tenant_claim"); claim != "" {
			i.Tenant, i.TenantClaim = "", claim
		}
		var ok bool
		if i.Tenants, ok = s.texts("tenants"); ok && len(i.Tenants) == 0 {
			s.wrong("tenants", "the list is empty; leave it out for every tenant")
		}
		if s.has("tenants") && !s.has("tenant_claim") {
			s.wrong("tenants", "it bounds nothing, since tenant_claim is missing")
		}
	}
	var ok bool
	if i.Boards, ok = s.texts("boards"); ok && len(i.Boards) == 0 {
		s.wrong("boards", "the list is empty; leave it out for every board of the tenant")
	}
	for _, name := range i.Boards {
		if err := checkName(name); err != nil {
			s.wrong("boards", "%v", err)
		}
	}
	if i.BoardsClaim = s.claim("boards_claim"); s.has("boards") && s.has("boards_claim") {
		s.wrong("boards_claim", "the issuer has boards already; give one of the two")
	}
}

func (s *section) grant(own bool) Grant {
	g := Grant{Claim: s.claim("claim"), Roles: s.roles()}
	var ok bool
	if g.Value, ok = s.text("value"); ok && g.Value == "" || s.has("claim") != s.has("value") {
		s.wrong("value", "want a claim and the value that it is to have; leave both out for every token of the issuer")
	}
	for _, role := range g.Roles {
		if own && (role == tenant.Operator || role == tenant.Metrics || role == tenant.Support) {
			s.wrong("roles", "an issuer of a tenant cannot make somebody %s, who stands above tenants", role)
		}
	}
	return g
}

// claim reads the name of a claim, or a way to it.
func (s *section) claim(name string) string {
	text, ok := s.text(name)
	if ok && (text == "" || len(text) > maxClaim) {
		s.wrong(name, "want the name of a claim, of 1 to %d bytes", maxClaim)
	}
	return text
}

const maxClaim = 256

// web demands a URL that nobody between here and there can answer for.
func (s *section) web(name, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		s.wrong(name, "%q is no URL of an issuer; want one such as https://login.example.org/realms/main", clip(text))
	case u.Scheme != "https" && (u.Scheme != "http" || !Loopback(u.Hostname())):
		s.wrong(name, "want https, or whoever is between could sign tokens (http is for this machine only), got %q", clip(text))
	}
}

func (s *section) algorithms() []string {
	list, ok := s.texts("algorithms")
	switch {
	case !s.has("algorithms"):
		return Algorithms
	case ok && len(list) == 0:
		s.wrong("algorithms", "the list is empty; leave it out for %s", strings.Join(Algorithms, ", "))
	}
	for _, name := range list {
		if !slices.Contains(Algorithms, name) {
			s.wrong("algorithms", "%q is none; want some of %s%s", clip(name), strings.Join(Algorithms, ", "), nearest.Hint(name, Algorithms))
		}
	}
	return list
}

// checkIssuers finds what is wrong between the issuers.
func (l *loader) checkIssuers() {
	names, pairs := map[string]Place{}, map[[2]string]Place{}
	for n, p := range l.issuers {
		i, s := l.config.Issuers[n], p.section
		if first, twice := names[i.Name]; twice {
			s.problem(s.at, "there is an oidc block of this name already, at %s", first)
		}
		names[i.Name] = s.at
		for _, audience := range i.Audiences {
			pair := [2]string{i.URL, audience}
			if first, twice := pairs[pair]; twice && first != s.at {
				s.wrong("audiences", "the oidc block at %s takes tokens of this issuer for %q already: nobody could tell them apart", first, clip(audience))
			}
			pairs[pair] = s.at
		}
		for _, name := range i.Tenants {
			if l.config.Catalog == "" && l.config.DataDir == "" {
				l.checkTenant(s, "tenants", name)
			} else if err := checkName(name); err != nil {
				s.wrong("tenants", "%v", err)
			}
		}
		l.checkOperators(s, &i)
	}
}

// checkOperators demands that nobody becomes an operator by what a tenant's own
// people could put into a claim.
func (l *loader) checkOperators(s *section, i *Issuer) {
	for _, g := range i.Grants {
		for _, role := range []tenant.Role{tenant.Operator, tenant.Support} {
			if g.Claim == "" && slices.Contains(g.Roles, role) {
				s.problem(s.at, "every token of the issuer would have the role %s: give the grant a claim and a value", role)
			}
		}
	}
}
