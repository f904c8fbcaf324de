package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// issuer is one block of the configuration, with the keys of its identity provider.
type issuer struct {
	config config.Issuer
	keys   *keySet
}

func newIssuer(c config.Issuer, r *running, logger *slog.Logger) (*issuer, error) {
	from := &source{issuer: c.URL, url: c.KeysURL, caFile: c.CAFile}
	if _, err := from.transport(); err != nil {
		return nil, job.Errorf(job.Invalid, "oidc %s: %v", c.Name, err)
	}
	return &issuer{config: c, keys: &keySet{name: c.Name, ask: from.keys, running: r, logger: logger}}, nil
}

// same reports whether the issuer is what a configuration says.
func (i *issuer) same(c *config.Issuer) bool { return reflect.DeepEqual(i.config, *c) }

// verify checks a token in the order in which what it says can be believed: first
// its form, then its signature, and only then its claims.
func (s *Issuers) verify(ctx context.Context, raw string) (*tenant.Principal, error) {
	token, err := parse(raw)
	if err != nil {
		return nil, err
	}
	header := token.Headers[0]
	if err := checkType(header); err != nil {
		return nil, err
	}
	var told jwt.Claims // by whoever sent it
	if err := token.UnsafeClaimsWithoutVerification(&told); err != nil {
		return nil, refused("its claims cannot be read")
	}
	candidates := s.now.Load().byURL[told.Issuer]
	if len(candidates) == 0 {
		return nil, refused("no oidc block of this server's configuration is for its issuer")
	}
	// Issuers of one URL have the same keys: the first that is for this audience is
	// asked, or just the first, so that the audience is judged after the signature.
	by := candidates[0]
	for _, c := range candidates {
		if slices.ContainsFunc(c.config.Audiences, told.Audience.Contains) {
			by = c
			break
		}
	}
	signer, claims, all, err := by.open(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := by.checkClaims(claims, time.Now()); err != nil {
		return nil, err
	}
	return s.principal(by, signer, claims, all)
}

// parse takes a token apart. What is no signature that any issuer may use goes no
// further: above all not "none", and no HMAC, whose key would be a public one.
func parse(raw string) (*jwt.JSONWebToken, error) {
	algorithms := make([]jose.SignatureAlgorithm, 0, len(config.Algorithms))
	for _, name := range config.Algorithms {
		algorithms = append(algorithms, jose.SignatureAlgorithm(name))
	}
	token, err := jwt.ParseSigned(raw, algorithms)
	if unexpected, ok := errors.AsType[*jose.ErrUnexpectedSignatureAlgorithm](err); ok {
		return nil, refused("it is signed with the algorithm %q; want one of %s", tenant.Clip(string(unexpected.Got)), strings.Join(config.Algorithms, ", "))
	}
	if err != nil || len(token.Headers) != 1 {
		return nil, refused("it cannot be read")
	}
	return token, nil
}

// checkType refuses tokens that are made for something else than being let in.
func checkType(h jose.Header) error {
	kind, ok := h.ExtraHeaders[jose.HeaderType]
	if !ok {
		return nil
	}
	name, _ := kind.(string)
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "jwt", "at+jwt":
		return nil
	}
	return refused("its type is %q; want JWT or at+jwt", tenant.Clip(name))
}

// open checks the signature, and returns the claims.
func (i *issuer) open(ctx context.Context, token *jwt.JSONWebToken) (*key, *jwt.Claims, map[string]any, error) {
	header := token.Headers[0]
	if !slices.Contains(i.config.Algorithms, header.Algorithm) {
		return nil, nil, nil, refused("it is signed with the algorithm %s; of the issuer %s want one of %s",
			header.Algorithm, i.config.Name, strings.Join(i.config.Algorithms, ", "))
	}
	candidates, err := i.keys.find(ctx, header.KeyID)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, k := range candidates {
		if k.Algorithm != "" && k.Algorithm != header.Algorithm {
			continue
		}
		claims, all := &jwt.Claims{}, map[string]any{}
		if token.Claims(k.Key, claims, &all) == nil {
			return k, claims, all, nil
		}
	}
	return nil, nil, nil, refused("its signature is not by a key of the issuer %s", i.config.Name)
}

// checkClaims checks what the issuer says of the token itself.
func (i *issuer) checkClaims(c *jwt.Claims, now time.Time) error {
	leeway := i.config.Leeway
	at := func(d *jwt.NumericDate) string { return d.Time().UTC().Format(time.RFC3339) }
	here := fmt.Sprintf("here it is %s, and %s of difference are allowed", now.UTC().Format(time.RFC3339), leeway)
	switch {
	case !slices.ContainsFunc(i.config.Audiences, c.Audience.Contains):
		return refused("it is for %q; want %q among them", clipAll(c.Audience), i.config.Audiences)
	case c.Subject == "" || len(c.Subject) > maxSubject:
		return refused("its claim sub has %d bytes; want 1 to %d", len(c.Subject), maxSubject)
	case c.Expiry == nil:
		return refused("it has no claim exp: a token that never ends is not taken")
	case !now.Before(c.Expiry.Time().Add(leeway)):
		return refused("it expired at %s (%s)", at(c.Expiry), here)
	case c.NotBefore != nil && now.Add(leeway).Before(c.NotBefore.Time()):
		return refused("it is not valid before %s (%s)", at(c.NotBefore), here)
	case c.IssuedAt != nil && now.Add(leeway).Before(c.IssuedAt.Time()):
		return refused("it was issued at %s, which is yet to come (%s)", at(c.IssuedAt), here)
	case c.Expiry.Time().Sub(now) > i.config.MaxLifetime+leeway:
		return refused("it is good until %s, which is longer than max_lifetime, %s, from now", at(c.Expiry), i.config.MaxLifetime)
	}
	return nil
}

// maxSubject bounds who somebody is, in bytes. OpenID Connect allows 255.
const maxSubject = 255

func clipAll(list []string) []string {
	list = list[:min(len(list), 5)]
	clipped := make([]string, len(list))
	for i, text := range list {
		clipped[i] = tenant.Clip(text)
	}
	return clipped
}

// principal makes of the claims who somebody is here.
func (s *Issuers) principal(by *issuer, signer *key, claims *jwt.Claims, all map[string]any) (*tenant.Principal, error) {
	if _, bound := all["cnf"]; bound {
		return nil, refused("it is bound to a key of its holder (claim cnf), which cannot be checked here")
	}
	if slices.Contains(by.config.Refuse, claims.Subject) {
		return nil, refused("its subject is in the list refuse of the issuer %s", by.config.Name)
	}
	g := granted{config: &by.config, claims: all}
	p := tenant.Principal{
		Issuer: by.config.URL, Subject: claims.Subject, Expires: claims.Expiry.Time().Add(by.config.Leeway),
	}
	var err error
	if p.Tenant, err = g.tenant(); err != nil {
		return nil, err
	}
	if p.TenantID, err = s.options.Tenant(p.Tenant); err != nil {
		if job.KindOf(err) == job.Unavailable {
			return nil, err
		}
		return nil, refused("%v", err)
	}
	if p.Roles, err = g.roles(); err != nil {
		return nil, err
	}
	if p.Boards, err = g.boards(); err != nil {
		return nil, err
	}
	name, err := g.name(claims.Subject)
	if err != nil {
		return nil, err
	}
	p.TokenName = by.config.Name + ":" + name
	l, err := by.keys.lifeOf(signer, p.Tenant, p.TenantID)
	if err != nil {
		return nil, err
	}
	return p.Living(l.ctx), nil
}
