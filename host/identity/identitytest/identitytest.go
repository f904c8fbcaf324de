// Package identitytest is an identity provider for tests.
package identitytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
)

// Provider is a little identity provider, over HTTPS with a certificate of its own.
type Provider struct {
	URL    string // of the issuer
	CAFile string
	Asked  atomic.Int64 // for its keys

	mu   sync.Mutex
	away bool
	keys []jose.JSONWebKey // public ones

	// Answer, if set before anybody asks, goes before what the provider would answer,
	// unless it returns false.
	Answer func(w http.ResponseWriter, path string) bool
}

// New starts a provider without keys, which ends with the test.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{}
	s := httptest.NewTLSServer(p)
	t.Cleanup(s.Close)
	p.URL, p.CAFile = s.URL, filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(p.CAFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// ServeHTTP answers with the discovery document and the keys.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.away:
		http.Error(w, "away", http.StatusServiceUnavailable)
	case p.Answer != nil && p.Answer(w, r.URL.Path):
	case r.URL.Path == "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.URL, "jwks_uri": p.URL + "/keys"})
	case r.URL.Path == "/keys":
		p.Asked.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: p.keys})
	default:
		http.NotFound(w, r)
	}
}

// Set has the provider show these keys from now on.
func (p *Provider) Set(keys ...*Key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = nil
	for _, k := range keys {
		p.keys = append(p.keys, k.Public())
	}
}

// Add has the provider show one more key.
func (p *Provider) Add(k jose.JSONWebKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, k)
}

// GoAway has the provider answer nobody, or everybody again.
func (p *Provider) GoAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

// Key is a private key of a provider.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// Public is the key as providers show it.
func (k *Key) Public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Use: "sig"}
}

// rsaKey is shared: making one takes long.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

// RSA makes a key, of which there is one in each process.
func RSA(id string) *Key { return &Key{id, jose.RS256, rsaKey()} }

// ECDSA makes a key.
func ECDSA(t testing.TB, id string) *Key {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Key{id, jose.ES256, k}
}

// Ed25519 makes a key.
func Ed25519(t testing.TB, id string) *Key {
	t.Helper()
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &Key{id, jose.EdDSA, k}
}

// Sign makes a token of claims, with more headers as pairs of name and value.
func (k *Key) Sign(t testing.TB, claims map[string]any, headers ...string) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	for i := 0; i < len(headers); i += 2 {
		options = options.WithHeader(jose.HeaderKey(headers[i]), headers[i+1])
	}
	with, err := jose.NewSigner(jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}, options)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := jwt.Signed(with).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Claims are those of a good token, with some set otherwise; nil takes one away.
func (p *Provider) Claims(other map[string]any) map[string]any {
	now := time.Now().Unix()
	claims := map[string]any{
		"iss": p.URL, "sub": "alice", "aud": "boardd", "exp": now + 300, "iat": now, "nbf": now, "groups": []string{"everybody", "workers"},
	}
	for name, value := range other {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// Settings are those of the provider's block in a configuration.
func (p *Provider) Settings() config.Issuer {
	return config.Issuer{
		Name: "corp", URL: p.URL, Audiences: []string{"boardd"}, CAFile: p.CAFile, Algorithms: config.Algorithms,
		Leeway: config.DefaultLeeway, MaxLifetime: config.DefaultMaxLifetime, Tenant: "acme",
		Grants: []config.Grant{
			{Claim: "groups", Value: "workers", Roles: []tenant.Role{tenant.Worker}},
			{Claim: "realm_access.roles", Value: "posters", Roles: []tenant.Role{tenant.Poster, tenant.Worker}},
			{Claim: "scope", Value: "board:read", Roles: []tenant.Role{tenant.Viewer}},
		},
	}
}
