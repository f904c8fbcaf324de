package identity_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/identity"
	"github.com/boardd/boardd/host/identity/identitytest"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// open returns Issuers with one block. There are the tenants acme and umbrella.
func open(t *testing.T, list ...config.Issuer) *identity.Issuers {
	t.Helper()
	s := identity.Open(identity.Options{Logger: slog.New(slog.DiscardHandler), Tenant: func(name string) (string, error) {
		if name != "acme" && name != "umbrella" {
			return "", tenant.NoTenant(name)
		}
		return "id-of-" + name, nil
	}})
	t.Cleanup(s.Close)
	if err := s.Replace(list); err != nil {
		t.Fatal(err)
	}
	return s
}

// refusal demands that a token lets nobody in, and that the reason is this one.
func refusal(t *testing.T, s *identity.Issuers, what, raw, want string) {
	t.Helper()
	p, err := s.Authenticate(t.Context(), raw)
	if !errors.Is(err, job.Unauthenticated) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %+v, %v; want the reason %q", what, p, err, want)
	}
	if err != nil && len(raw) > 40 && strings.Contains(err.Error(), raw[len(raw)-20:]) {
		t.Errorf("%s: the reason holds the token: %v", what, err)
	}
}

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	keys := []*identitytest.Key{identitytest.RSA("r"), identitytest.ECDSA(t, "e"), identitytest.Ed25519(t, "o")}
	p.Set(keys...)
	s := open(t, p.Settings())
	for _, k := range keys {
		who, err := s.Authenticate(t.Context(), k.Sign(t, p.Claims(nil)))
		if err != nil {
			t.Fatalf("%s: %v", k.Algorithm, err)
		}
		if who.Tenant != "acme" || who.TenantID != "id-of-acme" || who.TokenName != "corp:alice" || who.Subject != "alice" || who.Issuer != p.URL ||
			!slices.Equal(who.Roles, []tenant.Role{tenant.Worker}) || len(who.Boards) != 0 || who.Life().Err() != nil || time.Until(who.Expires) < 4*time.Minute {
			t.Errorf("%s: %+v", k.Algorithm, who)
		}
	}
	for what, c := range map[string]struct {
		claims map[string]any
		roles  []tenant.Role
	}{
		"several audiences":      {map[string]any{"aud": []string{"other", "boardd"}}, []tenant.Role{tenant.Worker}},
		"a claim within another": {map[string]any{"groups": nil, "realm_access": map[string]any{"roles": []string{"posters"}}}, []tenant.Role{tenant.Poster, tenant.Worker}},
		"the words of a scope":   {map[string]any{"groups": nil, "scope": "openid board:read"}, []tenant.Role{tenant.Viewer}},
		"one text":               {map[string]any{"groups": "workers"}, []tenant.Role{tenant.Worker}},
		"several grants":         {map[string]any{"scope": "board:read"}, []tenant.Role{tenant.Worker, tenant.Viewer}},
		"no iat and no nbf":      {map[string]any{"iat": nil, "nbf": nil}, []tenant.Role{tenant.Worker}},
		"a little late":          {map[string]any{"exp": time.Now().Unix() - 5}, []tenant.Role{tenant.Worker}},
		"a little early":         {map[string]any{"nbf": time.Now().Unix() + 10, "iat": time.Now().Unix() + 10}, []tenant.Role{tenant.Worker}},
	} {
		who, err := s.Authenticate(t.Context(), keys[1].Sign(t, p.Claims(c.claims)))
		if err != nil || !slices.Equal(who.Roles, c.roles) {
			t.Errorf("%s: %+v, %v; want %v", what, who, err, c.roles)
		}
	}
	if n := p.Asked.Load(); n != 1 {
		t.Errorf("the provider was asked for its keys %d times", n)
	}
}

func TestBadTokens(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	good, stranger := identitytest.RSA("r"), identitytest.ECDSA(t, "r")
	p.Set(good)
	c := p.Settings()
	c.Refuse = []string{"mallory"}
	s := open(t, c)
	hour := time.Now().Add(time.Hour).Unix()
	for what, x := range map[string]struct {
		claims map[string]any
		want   string
	}{
		"expired":                   {map[string]any{"exp": time.Now().Unix() - 60}, "it expired at"},
		"a clock an hour behind":    {map[string]any{"exp": time.Now().Unix() - 3300}, "and 30s of difference are allowed"},
		"a clock an hour ahead":     {map[string]any{"iat": hour, "nbf": hour, "exp": hour + 300}, "it is not valid before"},
		"issued in time to come":    {map[string]any{"iat": hour, "exp": hour + 300}, "which is yet to come"},
		"without an end":            {map[string]any{"exp": nil}, "no claim exp"},
		"an end that is none":       {map[string]any{"exp": "tomorrow"}, "claims cannot be read"},
		"good for ten years":        {map[string]any{"exp": time.Now().AddDate(10, 0, 0).Unix()}, "longer than max_lifetime, 24h0m0s"},
		"good for ever":             {map[string]any{"exp": json.Number("1e300")}, ""},
		"another audience":          {map[string]any{"aud": "other"}, `it is for ["other"]; want ["boardd"] among them`},
		"no audience":               {map[string]any{"aud": nil}, "it is for []"},
		"another issuer":            {map[string]any{"iss": "https://login.example.org"}, "no oidc block"},
		"no issuer":                 {map[string]any{"iss": nil}, "no oidc block"},
		"the issuer with a slash":   {map[string]any{"iss": p.URL + "/"}, "no oidc block"},
		"nobody":                    {map[string]any{"sub": nil}, "its claim sub has 0 bytes"},
		"a long name":               {map[string]any{"sub": strings.Repeat("x", 256)}, "its claim sub has 256 bytes"},
		"a name that hides itself":  {map[string]any{"sub": "alice\u202e"}, "cannot be seen"},
		"a name with a line end":    {map[string]any{"sub": "alice\nlevel=INFO"}, "cannot be seen"},
		"who is refused":            {map[string]any{"sub": "mallory"}, "in the list refuse"},
		"no mapping":                {map[string]any{"groups": []string{"others"}}, "no grant of the issuer corp"},
		"a mapping of another sort": {map[string]any{"groups": 7}, "no grant of the issuer corp"},
		"bound to its holder":       {map[string]any{"cnf": map[string]any{"jkt": "x"}}, "claim cnf"},
	} {
		refusal(t, s, what, good.Sign(t, p.Claims(x.claims)), x.want)
	}
	raw := good.Sign(t, p.Claims(nil))
	parts := strings.Split(raw, ".")
	refusal(t, s, "another key of the same name", stranger.Sign(t, p.Claims(nil)), "its signature is not by a key")
	refusal(t, s, "a key that nobody knows", identitytest.ECDSA(t, "unheard-of").Sign(t, p.Claims(nil)), "no such key")
	refusal(t, s, "no signature", parts[0]+"."+parts[1]+".", "")
	refusal(t, s, "another's claims", parts[0]+"."+encoded(p.Claims(map[string]any{"sub": "bob"}))+"."+parts[2], "its signature is not by a key")
	refusal(t, s, "a type of another use", good.Sign(t, p.Claims(nil), "typ", "logout+jwt"), `its type is "logout+jwt"`)
	refusal(t, s, "a header that must be understood", good.Sign(t, p.Claims(nil), "crit", "exp"), "")
	refusal(t, s, "too long", raw+strings.Repeat("x", identity.MaxToken), "at most 16384 are looked at")
	for _, name := range []string{"none", "None", "NONE", "nOnE", "HS256", "HS512", "RS1", "ES256K", ""} {
		forged := encoded(map[string]any{"alg": name, "kid": "r", "typ": "JWT"}) + "." + parts[1] + "."
		refusal(t, s, "alg "+name, forged, "")
		refusal(t, s, "alg "+name+" with a signature", forged+parts[2], "")
	}
	// The public key taken for the secret of an HMAC, in each form that it is passed around in.
	public, err := x509.MarshalPKIXPublicKey(good.Public().Key)
	if err != nil {
		t.Fatal(err)
	}
	written, err := good.Public().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for form, secret := range map[string][]byte{"DER": public, "PEM": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), "JWK": written} {
		text := encoded(map[string]any{"alg": "HS256", "kid": "r"}) + "." + parts[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		refusal(t, s, "HMAC with the public key as "+form, text+"."+base64.RawURLEncoding.EncodeToString(mac.Sum(nil)), `the algorithm "HS256"`)
	}
	// A key that the token brings along, or tells where to get.
	own := identitytest.ECDSA(t, "own")
	text, err := own.Public().MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	refusal(t, s, "a key of its own", own.Sign(t, p.Claims(nil), "jku", p.URL+"/keys", "x5u", p.URL), "no such key")
	header := encoded(map[string]any{"alg": "ES256", "kid": "own", "jwk": json.RawMessage(text)})
	refusal(t, s, "a key within", header+"."+parts[1]+"."+parts[2], "")
	if who, err := s.Authenticate(t.Context(), raw); err != nil {
		t.Errorf("the good one: %+v, %v", who, err)
	}
}

func encoded(value any) string {
	text, _ := json.Marshal(value)
	return base64.RawURLEncoding.EncodeToString(text)
}

// TestAlgorithms: a block may take fewer than boardd does, and a key may be for one.
func TestAlgorithms(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	bound := identitytest.RSA("bound")
	public := bound.Public()
	public.Algorithm = "PS256"
	e := identitytest.ECDSA(t, "e")
	p.Set(e)
	p.Add(public)
	c := p.Settings()
	c.Algorithms = []string{"RS256", "PS256"}
	s := open(t, c)
	refusal(t, s, "one that the block does not take", e.Sign(t, p.Claims(nil)), "signed with the algorithm ES256; of the issuer corp want one of RS256, PS256")
	refusal(t, s, "one that the key is not for", bound.Sign(t, p.Claims(nil)), "its signature is not by a key")
	bound.Algorithm = jose.PS256
	if _, err := s.Authenticate(t.Context(), bound.Sign(t, p.Claims(nil))); err != nil {
		t.Error(err)
	}
}

// TestScopes: a claim says whose the token is, and which boards it may touch.
func TestScopes(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	k := identitytest.ECDSA(t, "e")
	p.Set(k)
	c := p.Settings()
	c.Tenant, c.TenantClaim, c.BoardsClaim, c.NameClaim = "", "org", "boards", "email"
	c.Tenants = []string{"acme", "nonesuch"}
	s := open(t, c)
	with := func(other map[string]any) string {
		claims := map[string]any{"org": "acme", "boards": []string{"builds"}, "email": "alice@example.org"}
		maps.Copy(claims, other)
		return k.Sign(t, p.Claims(claims))
	}
	who, err := s.Authenticate(t.Context(), with(nil))
	if err != nil || who.Tenant != "acme" || !slices.Equal(who.Boards, []string{"builds"}) || who.TokenName != "corp:alice@example.org" || who.Subject != "alice" {
		t.Errorf("%+v, %v", who, err)
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("b%d", i)
	}
	for what, other := range map[string]map[string]any{
		"a tenant that it may not name": {"org": "umbrella"}, "a tenant that there is not": {"org": "nonesuch"},
		"no tenant": {"org": nil}, "two tenants": {"org": []string{"acme", "umbrella"}}, "a path": {"org": "../acme"}, "a homograph": {"org": "\u0430cme"},
		"no boards": {"boards": nil}, "an empty list of boards": {"boards": []string{}}, "too many boards": {"boards": many}, "a board of no name": {"boards": []string{"a/b"}},
		"no name": {"email": nil}, "an empty name": {"email": ""},
	} {
		refusal(t, s, what, with(other), "refused")
	}
}

// TestKeysTurn: a new key is good at once, one that was withdrawn is not, and what
// goes on in its name ends.
func TestKeysTurn(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	first, second := identitytest.ECDSA(t, "first"), identitytest.ECDSA(t, "second")
	p.Set(first)
	s := open(t, p.Settings())
	old := first.Sign(t, p.Claims(nil))
	who, err := s.Authenticate(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	p.Set(second)
	identity.Forgive(s) // as after a while
	if _, err := s.Authenticate(t.Context(), second.Sign(t, p.Claims(nil))); err != nil {
		t.Errorf("the new key: %v", err)
	}
	if !errors.Is(context.Cause(who.Life()), job.Unauthenticated) {
		t.Errorf("what went on in the name of the old key: %v", context.Cause(who.Life()))
	}
	refusal(t, s, "the old key", old, "no such key")
	// A provider that goes away takes nothing with it.
	p.GoAway(true)
	identity.Forgive(s)
	refusal(t, s, "a third key", identitytest.ECDSA(t, "third").Sign(t, p.Claims(nil)), "no such key")
	if _, err := s.Authenticate(t.Context(), second.Sign(t, p.Claims(map[string]any{"sub": "bob"}))); err != nil {
		t.Errorf("while the provider is away: %v", err)
	}
}

// TestBadProviders: what a provider answers is not believed as it is.
func TestBadProviders(t *testing.T) {
	t.Parallel()
	k := identitytest.ECDSA(t, "e")
	discovery := "/.well-known/openid-configuration"
	for what, answer := range map[string]func(p *identitytest.Provider) func(http.ResponseWriter, string) bool{
		"nothing there": func(*identitytest.Provider) func(http.ResponseWriter, string) bool {
			return func(w http.ResponseWriter, _ string) bool { http.Error(w, "no", http.StatusNotFound); return true }
		},
		"another's document": func(p *identitytest.Provider) func(http.ResponseWriter, string) bool {
			return says(discovery, `{"issuer":"https://evil.example","jwks_uri":"`+p.URL+`/keys"}`)
		},
		"keys in the clear": func(p *identitytest.Provider) func(http.ResponseWriter, string) bool {
			return says(discovery, `{"issuer":"`+p.URL+`","jwks_uri":"http://127.0.0.1:1/keys"}`)
		},
		"keys in a file": func(p *identitytest.Provider) func(http.ResponseWriter, string) bool {
			return says(discovery, `{"issuer":"`+p.URL+`","jwks_uri":"file:///etc/passwd"}`)
		},
		"no keys": func(*identitytest.Provider) func(http.ResponseWriter, string) bool {
			return says("/keys", `{"keys":[]}`)
		},
		"a secret for a key": func(*identitytest.Provider) func(http.ResponseWriter, string) bool {
			return says("/keys", `{"keys":[{"kty":"oct","kid":"e","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`)
		},
		"no JSON": func(*identitytest.Provider) func(http.ResponseWriter, string) bool { return says("/keys", `<html>`) },
		"too many keys": func(p *identitytest.Provider) func(http.ResponseWriter, string) bool {
			one, _ := k.Public().MarshalJSON()
			return says("/keys", `{"keys":[`+strings.Repeat(string(one)+",", identity.MaxKeys)+string(one)+`]}`)
		},
		"too much": func(*identitytest.Provider) func(http.ResponseWriter, string) bool {
			return says("/keys", `{"keys":[`+strings.Repeat(" ", 1<<20)+`]}`)
		},
		"elsewhere": func(*identitytest.Provider) func(http.ResponseWriter, string) bool {
			return func(w http.ResponseWriter, path string) bool {
				w.Header().Set("Location", "/other")
				w.WriteHeader(http.StatusFound)
				return path != "/other"
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := identitytest.New(t)
			p.Set(k)
			p.Answer = answer(p)
			s := open(t, p.Settings())
			if who, err := s.Authenticate(t.Context(), k.Sign(t, p.Claims(nil))); !errors.Is(err, job.Unavailable) {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
	p := identitytest.New(t)
	p.Set(k)
	c := p.Settings()
	c.CAFile = ""
	if who, err := open(t, c).Authenticate(t.Context(), k.Sign(t, p.Claims(nil))); !errors.Is(err, job.Unavailable) {
		t.Errorf("a certificate that nobody vouches for: %+v, %v", who, err)
	}
	c = p.Settings()
	c.KeysURL = p.URL + "/keys"
	p.Answer = func(w http.ResponseWriter, path string) bool {
		return path == discovery && says(discovery, "none")(w, path)
	}
	if _, err := open(t, c).Authenticate(t.Context(), k.Sign(t, p.Claims(nil))); err != nil {
		t.Errorf("without discovery: %v", err)
	}
	c.CAFile = "/nowhere/ca.pem"
	if err := identity.Check([]config.Issuer{c}); !errors.Is(err, job.Invalid) {
		t.Errorf("a ca_file that is not there: %v", err)
	}
}

// says answers one path with a text.
func says(path, text string) func(http.ResponseWriter, string) bool {
	return func(w http.ResponseWriter, asked string) bool {
		if asked == path {
			_, _ = w.Write([]byte(text))
		}
		return asked == path
	}
}

// TestReplace: what is the same goes on, with its keys; what is not ends.
func TestReplace(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	k := identitytest.ECDSA(t, "e")
	p.Set(k)
	s := open(t, p.Settings())
	raw := k.Sign(t, p.Claims(nil))
	who, err := s.Authenticate(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Replace([]config.Issuer{p.Settings()}); err != nil || who.Life().Err() != nil || p.Asked.Load() != 1 {
		t.Errorf("replaced by the same: %v, %v, asked %d times", err, who.Life().Err(), p.Asked.Load())
	}
	other := p.Settings()
	other.Refuse = []string{"alice"}
	if err := s.Replace([]config.Issuer{other}); err != nil {
		t.Fatal(err)
	}
	if who.Life().Err() == nil {
		t.Error("what was let in before she was refused goes on")
	}
	refusal(t, s, "who is refused by now", raw, "in the list refuse")
	if err := s.Replace(nil); err != nil || s.Trusts() {
		t.Errorf("no issuers: %v", err)
	}
}

// TestTwoBlocksOfOneProvider are told apart by their audiences.
func TestTwoBlocksOfOneProvider(t *testing.T) {
	t.Parallel()
	p := identitytest.New(t)
	k := identitytest.ECDSA(t, "e")
	p.Set(k)
	other := p.Settings()
	other.Name, other.Audiences, other.Tenant = "other", []string{"boards-of-umbrella"}, "umbrella"
	s := open(t, p.Settings(), other)
	for audience, want := range map[string]string{"boardd": "acme", "boards-of-umbrella": "umbrella"} {
		who, err := s.Authenticate(t.Context(), k.Sign(t, p.Claims(map[string]any{"aud": audience})))
		if err != nil || who.Tenant != want {
			t.Errorf("%s: %+v, %v", audience, who, err)
		}
	}
}

func FuzzToken(f *testing.F) {
	t := &testing.T{}
	p := &identitytest.Provider{URL: "https://login.example.org"}
	k := identitytest.RSA("r")
	good := k.Sign(t, p.Claims(nil))
	f.Add(good)
	f.Add("eyJ.e30.")
	f.Add(encoded(map[string]any{"alg": "none"}) + "." + strings.Split(good, ".")[1] + ".")
	s := identity.WithKeys(p.Settings(), k.Public())
	f.Cleanup(s.Close)
	f.Fuzz(func(t *testing.T, raw string) {
		who, err := s.Authenticate(t.Context(), raw)
		switch {
		case err == nil && (who.Subject != "alice" || who.Tenant != "acme"):
			t.Errorf("%q lets in %+v", raw, who)
		case err != nil && job.KindOf(err) != job.Unauthenticated:
			t.Errorf("%q: %v", raw, err)
		}
	})
}
