package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/identity/identitytest"
	"github.com/boardd/boardd/host/tenant"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
)

// identified is a server that takes the tokens of a provider: of the tenant acme,
// with those roles that the claim roles names.
func identified(t *testing.T, change func(*config.Config), logger *slog.Logger) (*server, *identitytest.Provider, *identitytest.Key) {
	t.Helper()
	p, k := identitytest.New(t), identitytest.ECDSA(t, "e")
	p.Set(k)
	c := hosted(t)
	issuer := p.Settings()
	issuer.Leeway, issuer.Grants = 0, nil
	for _, role := range tenant.Roles() {
		issuer.Grants = append(issuer.Grants, config.Grant{Claim: "roles", Value: string(role), Roles: []tenant.Role{role}})
	}
	c.Issuers = []config.Issuer{issuer}
	if change != nil {
		change(&c)
	}
	return serveWith(t, c, logger), p, k
}

// TestSignedTokensAreLikeOthers goes through all calls with each role, about its
// own tenant, another one and one that does not exist.
func TestSignedTokensAreLikeOthers(t *testing.T) {
	t.Parallel()
	s, p, k := identified(t, nil, quiet())
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{})
	for _, role := range tenant.Roles() {
		secret := k.Sign(t, p.Claims(map[string]any{"roles": string(role)}))
		for _, file := range []protoreflect.FileDescriptor{boarddv1.File_boardd_v1_boardd_proto, boarddv1.File_boardd_v1_admin_proto} {
			methods := file.Services().Get(0).Methods()
			for i := range methods.Len() {
				if !methods.Get(i).IsStreamingServer() {
					s.checkCall(t, methods.Get(i), role, secret)
				}
			}
		}
	}
}

// TestWhoSignedTokensAre: WhoAmI, the log and the audit log say who it is, and none
// of them holds the token.
func TestWhoSignedTokensAre(t *testing.T) {
	t.Parallel()
	var log memory
	all := func(c *config.Config) { c.Audit.Calls = config.AuditAll }
	s, p, k := identified(t, all, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	secret := k.Sign(t, p.Claims(map[string]any{"roles": []string{"worker", "poster"}}))
	var who struct {
		Tenant, TokenName string
		Roles             []string
	}
	s.must(t, secret, "WhoAmI", `{}`, &who)
	if who.Tenant != "acme" || who.TokenName != "corp:alice" || !slices.Equal(who.Roles, []string{"poster", "worker"}) {
		t.Errorf("who: %+v", who)
	}
	var posted wireResults
	s.must(t, secret, "PostJobs", `{"board":"default","jobs":[{"name":"a"}]}`, &posted)
	posted.noErrors(t, 1)
	for what, c := range map[string]struct {
		secret, message string
		status          int
	}{
		"more than its roles allow": {secret, `token "corp:alice" has the roles [poster, worker]; PurgeJobs needs one of`, http.StatusForbidden},
		"no role":                   {k.Sign(t, p.Claims(map[string]any{"roles": "boss"})), "no grant of the issuer corp", http.StatusUnauthorized},
		"expired":                   {k.Sign(t, p.Claims(map[string]any{"exp": time.Now().Unix() - 1})), "it expired at", http.StatusUnauthorized},
		"another key":               {identitytest.ECDSA(t, "e").Sign(t, p.Claims(nil)), "its signature is not by a key", http.StatusUnauthorized},
	} {
		r := s.call(t, c.secret, "PurgeJobs", `{"board":"default"}`)
		if _, message := r.failure(); r.status != c.status || !strings.Contains(message, c.message) {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
	}
	signature := secret[strings.LastIndexByte(secret, '.')+1:]
	eventually(t, "what was posted is in the audit log", func() bool {
		text := s.mustAdmin(t, operatorSecret, "GetAudit", `{"all":true,"max":1000}`, &struct{}{})
		if strings.Contains(text, signature) {
			t.Error("the audit log holds the token")
		}
		return strings.Contains(text, `"call":"PostJobs"`) && strings.Contains(text, `"caller":"corp:alice"`) && strings.Contains(text, `"call":"PurgeJobs"`)
	})
	if text := log.String(); strings.Contains(text, signature) || !strings.Contains(text, "token=corp:alice") {
		t.Errorf("the log: %s", text)
	}
}

// TestSignedTokenEndsUnderACall: what waits in its name ends with it.
func TestSignedTokenEndsUnderACall(t *testing.T) {
	t.Parallel()
	s, p, k := identified(t, nil, quiet())
	secret := k.Sign(t, p.Claims(map[string]any{"roles": "worker", "exp": time.Now().Unix() + 4}))
	s.must(t, secret, "WhoAmI", `{}`, nil)
	for what, ended := range map[string]func() (int, string){
		"a claim":   s.during(t, secret, "ClaimJobs", `{"board":"default","owner":"w","wait":"50s"}`),
		"a worker":  s.during(t, secret, "Work", `{"board":"default","owner":"w","max":1,"wait":"50s"}`),
		"a watcher": s.during(t, secret, "ListEvents", `{"board":"default","wait":"50s"}`),
	} {
		if status, answer := ended(); status != http.StatusUnauthorized || !strings.Contains(answer, "expired") {
			t.Errorf("%s: %d %s", what, status, answer)
		}
	}
	if code := endOfStream(t, s, secret, "default"); code != "unauthenticated" {
		t.Errorf("a stream with a token that has expired ends with %q", code)
	}
	brief := k.Sign(t, p.Claims(map[string]any{"roles": "viewer", "exp": time.Now().Unix() + 3}))
	if code := endOfStream(t, s, brief, "default"); code != "unauthenticated" {
		t.Errorf("a stream whose token expires ends with %q", code)
	}
}

// TestTenantsOfSignedTokens: a claim may name a tenant of the catalog, for as long
// as there is one.
func TestTenantsOfSignedTokens(t *testing.T) {
	t.Parallel()
	s, p, k := identified(t, func(c *config.Config) {
		c.Issuers[0].Tenant, c.Issuers[0].TenantClaim = "", "org"
	}, quiet())
	s.ready(t)
	secret := k.Sign(t, p.Claims(map[string]any{"roles": "tenant-admin", "org": "umbrella"}))
	absent := s.call(t, secret, "ListBoards", `{}`)
	if absent.status != http.StatusUnauthorized {
		t.Errorf("of a tenant that there is not: %d %s", absent.status, absent.body)
	}
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{})
	s.mustAdmin(t, secret, "CreateBoard", `{"board":{"name":"b","backend":"store"}}`, &struct{}{})
	if status, answer := s.board(t, k.Sign(t, p.Claims(map[string]any{"roles": "viewer", "org": "acme"})), "GetBoard", `{"board":"b"}`); status != http.StatusNotFound {
		t.Errorf("the board of another tenant: %d %s", status, answer)
	}
	watching := s.during(t, secret, "ListEvents", `{"board":"b","wait":"50s"}`)
	s.mustAdmin(t, operatorSecret, "DeleteTenant", `{"name":"umbrella"}`, &struct{}{})
	if status, answer := watching(); status != http.StatusUnauthorized && status != http.StatusNotFound {
		t.Errorf("who watched for a tenant that is gone: %d %s", status, answer)
	}
	s.mustAdmin(t, operatorSecret, "DeleteTenant", `{"name":"umbrella","purge":true}`, &struct{}{})
	if gone := s.call(t, secret, "ListBoards", `{}`); gone.status != http.StatusUnauthorized || gone.body != absent.body {
		t.Errorf("of a tenant that is gone: %d %s; want as for one that never was: %s", gone.status, gone.body, absent.body)
	}
}

// TestProviderAway: without keys nobody can tell who somebody is, which is not the
// caller's fault.
func TestProviderAway(t *testing.T) {
	t.Parallel()
	p, k := identitytest.New(t), identitytest.ECDSA(t, "e")
	p.GoAway(true)
	c := hosted(t)
	c.Issuers = []config.Issuer{p.Settings()}
	s := serveWith(t, c, quiet())
	if r := s.call(t, k.Sign(t, p.Claims(nil)), "WhoAmI", `{}`); r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, "keys of the issuer corp cannot be had") {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.must(t, workerSecret, "WhoAmI", `{}`, nil)
	if text := s.do(t, http.MethodGet, "/metrics", metricsSecret, "").body; !strings.Contains(text, `boardd_issuer_keys_age_seconds{issuer="corp"} -1`) {
		t.Errorf("the metrics do not say that there are no keys:\n%s", text)
	}
}

func BenchmarkSignedToken(b *testing.B) {
	p, k := identitytest.New(b), identitytest.RSA("r")
	p.Set(k)
	c := settings()
	c.Issuers = []config.Issuer{p.Settings()}
	s := serveWith(b, c, quiet())
	for name, secret := range map[string]string{"secret": workerSecret, "signed": k.Sign(b, p.Claims(nil))} {
		b.Run(fmt.Sprint("by=", name), func(b *testing.B) {
			for b.Loop() {
				s.must(b, secret, "WhoAmI", `{}`, nil)
			}
		})
	}
}

// endOfStream watches a board until the stream ends by itself, and returns the code
// of its end.
func endOfStream(t *testing.T, s *server, secret, board string) string {
	t.Helper()
	client := boarddv1connect.NewBoardServiceClient(s.client, s.url, connect.WithInterceptors(bearer(secret)))
	stream, err := client.WatchBoard(t.Context(), connect.NewRequest(&boarddv1.WatchBoardRequest{Board: board}))
	if err != nil {
		return connect.CodeOf(err).String()
	}
	defer func() { _ = stream.Close() }()
	for stream.Receive() {
		continue
	}
	return connect.CodeOf(stream.Err()).String()
}
