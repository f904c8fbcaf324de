// Package tenant knows who may call, and what. A secret leads to a token, the
// token to one tenant and some roles, and one table says which role may make
// which call.
//
// A call's board is looked up in the tenant of its token and nowhere else, so
// that not even an operator reaches another tenant's board by naming it.
package tenant

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Default is the tenant of every token and board that names none.
const Default = "default"

// Limits on a secret, in bytes. The upper one bounds what an unknown caller can
// make the server hash.
const (
	MinSecret = 16
	MaxSecret = 4096
)

// Digest is all that is kept of a secret: its SHA-256. A secret has too many
// possible values to be guessed from it, so a slow hash would protect nothing
// more and would cost every call.
type Digest [sha256.Size]byte

// DigestOf returns the digest of a secret.
func DigestOf(secret string) Digest { return sha256.Sum256([]byte(secret)) }

// CheckSecret refuses a secret that is too short to be safe, too long to be
// accepted, or of characters that cannot be sent in a header. A development
// server (dev) takes a short one. The error does not repeat the secret.
func CheckSecret(secret string, dev bool) error {
	unsendable := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case secret == "":
		return job.Errorf(job.Invalid, "the secret is empty")
	case strings.ContainsFunc(secret, unsendable):
		return job.Errorf(job.Invalid, "the secret has a character that a header cannot carry; want printable ASCII without spaces")
	case len(secret) < MinSecret && !dev:
		return job.Errorf(job.Invalid, "the secret has %d characters, want at least %d: take one from `openssl rand -hex 32`", len(secret), MinSecret)
	case len(secret) > MaxSecret:
		return job.Errorf(job.Invalid, "the secret has %d characters, want at most %d", len(secret), MaxSecret)
	}
	return nil
}

// Token is a way into one tenant.
type Token struct {
	Name   string
	Tenant string // empty: Default
	Roles  []Role
	Boards []string // the only boards that it may touch; empty: all of its tenant
	Digest Digest   // zero for one without a secret

	// Certificate is a name in a client's certificate, a URI or a DNS name, that
	// lets somebody in without a secret.
	Certificate string

	ID      string    // of this very token, where it was made through the API; another one of its name has another
	Expires time.Time // zero: never
}

// same reports whether two tokens allow the same.
func (t *Token) same(o *Token) bool {
	return t.Tenant == o.Tenant && t.Name == o.Name && t.ID == o.ID && t.Digest == o.Digest && t.Certificate == o.Certificate &&
		t.Expires.Equal(o.Expires) && slices.Equal(t.Roles, o.Roles) && slices.Equal(t.Boards, o.Boards)
}

// Registry knows every token. Any number of calls may ask it at once, as long as it is not
// changed.
type Registry struct {
	byDigest      map[Digest]*entry
	byCertificate map[string]*entry
	byTenant      map[string]map[string]*entry // and name
	nobody        entry
}

type entry struct {
	token     Token
	principal *Principal
}

// NewRegistry makes a Registry of tokens. Two tokens of one name in one tenant
// and two tokens with one secret are refused, as is a token without a secret or
// with a role that does not exist.
func NewRegistry(tokens []Token) (*Registry, error) {
	r := &Registry{byDigest: make(map[Digest]*entry, len(tokens)), byCertificate: map[string]*entry{}, byTenant: map[string]map[string]*entry{}}
	for _, t := range tokens {
		if t.Tenant == "" {
			t.Tenant = Default
		}
		if err := r.add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// add takes a token in, or refuses it.
func (r *Registry) add(t Token) error {
	for _, role := range t.Roles {
		if _, err := ParseRole(string(role)); err != nil {
			return &job.Error{Kind: job.Invalid, Message: fmt.Sprintf("token %q", t.Name), Err: err}
		}
	}
	other := r.byDigest[t.Digest]
	switch {
	case t.Digest == Digest{} && t.Certificate == "":
		return job.Errorf(job.Invalid, "token %q of tenant %q has no secret", t.Name, t.Tenant)
	case t.Certificate != "" && r.byCertificate[t.Certificate] != nil:
		return job.Errorf(job.Invalid, "two tokens are for the certificate %q", t.Certificate)
	case r.byTenant[t.Tenant][t.Name] != nil:
		return job.Errorf(job.Invalid, "tenant %q has two tokens named %q", t.Tenant, t.Name)
	case other != nil:
		return job.Errorf(job.Invalid, "token %q of tenant %q has the same secret as token %q of tenant %q; every token needs one of its own",
			t.Name, t.Tenant, other.token.Name, other.token.Tenant)
	}
	t.Roles, t.Boards = slices.Clone(t.Roles), slices.Clone(t.Boards)
	e := &entry{token: t, principal: newPrincipal(&t)}
	if t.Digest != (Digest{}) {
		r.byDigest[t.Digest] = e
	}
	if t.Certificate != "" {
		r.byCertificate[t.Certificate] = e
	}
	if r.byTenant[t.Tenant] == nil {
		r.byTenant[t.Tenant] = map[string]*entry{}
	}
	r.byTenant[t.Tenant][t.Name] = e
	return nil
}

// drop takes a token out.
func (r *Registry) drop(e *entry) {
	of := e.token.Tenant
	delete(r.byDigest, e.token.Digest)
	delete(r.byCertificate, e.token.Certificate)
	delete(r.byTenant[of], e.token.Name)
	if len(r.byTenant[of]) == 0 {
		delete(r.byTenant, of)
	}
}

// Authenticate returns whom a secret stands for. A secret that is not known is
// Unauthenticated, with the same words whatever was wrong with it. The time
// that it takes tells nothing of any secret: the table is searched by hash, of
// which a caller cannot choose the first bits, and the hash that was found is
// compared as a whole.
func (r *Registry) Authenticate(secret string) (*Principal, error) {
	if secret == "" {
		return nil, job.Errorf(job.Unauthenticated, "this call needs a token: send the header Authorization: Bearer SECRET")
	}
	if len(secret) > MaxSecret {
		return nil, unknownToken()
	}
	digest := DigestOf(secret)
	found, ok := r.byDigest[digest]
	if !ok {
		found = &r.nobody
	}
	same := subtle.ConstantTimeCompare(digest[:], found.token.Digest[:]) == 1
	if !ok || !same {
		return nil, unknownToken()
	}
	return found.admit()
}

// Recognize returns whom a client's certificate stands for, by the names in it.
// The caller has checked that somebody who may has signed it.
func (r *Registry) Recognize(names []string) (*Principal, error) {
	for _, name := range names {
		if found, ok := r.byCertificate[name]; ok {
			return found.admit()
		}
	}
	return nil, job.Errorf(job.Unauthenticated, "this call needs a token: no token of this server is for the certificate; send the header Authorization: Bearer SECRET")
}

// admit lets in by a token that has not expired.
func (e *entry) admit() (*Principal, error) {
	if at := e.token.Expires; !at.IsZero() && !time.Now().Before(at) {
		return nil, expired(e.principal)
	}
	return e.principal, nil
}

func expired(p *Principal) error {
	return job.Errorf(job.Unauthenticated, "the token %q expired at %s", p.TokenName, p.Expires.UTC().Format(time.RFC3339))
}

func unknownToken() error {
	return job.Errorf(job.Unauthenticated, "the token is not known to this server")
}
