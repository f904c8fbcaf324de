package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

const operatorSecret = "operator-secret-of-the-test"

// hosted is a server with a catalog, an operator and two tenants of the
// configuration; acme may make boards on the backend "store".
func hosted(t testing.TB) config.Config {
	t.Helper()
	c := settings()
	c.DataDir = t.TempDir()
	c.Catalog = "store"
	c.Backends = append(c.Backends, config.Backend{Name: "private", Driver: "memory", Settings: []byte("{}")})
	c.Backends[0].Tenants = []string{"acme", "umbrella", "default"}
	c.Tokens = append(c.Tokens, token("default", "operator", operatorSecret, tenant.Operator))
	return c
}

// admin makes a call of AdminService and returns status and body.
func (s *server) admin(t testing.TB, secret, call, body string) (int, string) {
	t.Helper()
	r := s.do(t, http.MethodPost, "/boardd.v1.AdminService/"+call, secret, body)
	return r.status, r.body
}

// board makes a call of BoardService and returns status and body.
func (s *server) board(t testing.TB, secret, call, body string) (int, string) {
	t.Helper()
	r := s.call(t, secret, call, body)
	return r.status, r.body
}

// during makes a call that waits, and returns what gives its answer. The server
// has the call before during returns, or nearly so: what must end it ends it
// whenever it comes.
func (s *server) during(t testing.TB, secret, call, body string) func() (int, string) {
	t.Helper()
	done := make(chan reply, 1)
	go func() { done <- s.call(t, secret, call, body) }()
	return func() (int, string) {
		select {
		case r := <-done:
			return r.status, r.body
		case <-time.After(30 * time.Second):
			return 0, "the call still waits"
		}
	}
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func (s *server) mustAdmin(t testing.TB, secret, call, body string, into any) string {
	t.Helper()
	status, answer := s.admin(t, secret, call, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", call, body, status, answer)
	}
	reflect.ValueOf(into).Elem().SetZero()
	if err := json.Unmarshal([]byte(answer), into); err != nil {
		t.Fatalf("%s: %v in %s", call, err, answer)
	}
	return answer
}

// newToken makes a token and returns its secret.
func newToken(t testing.TB, s *server, of, name string, roles ...string) string {
	t.Helper()
	var made struct{ Secret string }
	s.mustAdmin(t, operatorSecret, "CreateToken", fmt.Sprintf(`{"tenant":%q,"name":%q,"roles":["%s"]}`, of, name, strings.Join(roles, `","`)), &made)
	if len(made.Secret) < 40 || !strings.HasPrefix(made.Secret, "boardd_") {
		t.Fatalf("the secret is %q", made.Secret)
	}
	return made.Secret
}

// TestEveryCallEveryRoleEveryTenant goes through all calls of both services, as
// found in their descriptions, with each role, about its own tenant, another one
// and one that does not exist. The answer about the last two must be the same.
func TestEveryCallEveryRoleEveryTenant(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{})
	secrets := map[tenant.Role]string{}
	for _, role := range tenant.Roles() {
		secrets[role] = newToken(t, s, "acme", "m-"+string(role), string(role))
	}
	for _, file := range []protoreflect.FileDescriptor{boarddv1.File_boardd_v1_boardd_proto, boarddv1.File_boardd_v1_admin_proto} {
		service := file.Services().Get(0)
		for i := range service.Methods().Len() {
			m := service.Methods().Get(i)
			if m.IsStreamingServer() {
				continue // its errors come in a body of their own: TestRolesOfStreams
			}
			for role, secret := range secrets {
				s.checkCall(t, m, role, secret)
			}
		}
	}
}

var binaryForm = regexp.MustCompile(`"value":"[^"]*"`)

// checkCall makes one call with one role.
func (s *server) checkCall(t *testing.T, m protoreflect.MethodDescriptor, role tenant.Role, secret string) {
	t.Helper()
	call := string(m.Name())
	may := (&tenant.Principal{Tenant: "acme", Roles: []tenant.Role{role}}).May(call, "")
	path := "/" + string(m.Parent().FullName()) + "/" + call
	fields := m.Input().Fields()
	about := func(tenantName, board string) (int, string) {
		var parts []string
		if fields.ByName("tenant") != nil {
			parts = append(parts, fmt.Sprintf(`"tenant":%q`, tenantName))
		}
		switch f := fields.ByName("board"); {
		case f != nil && f.Kind() == protoreflect.StringKind:
			parts = append(parts, fmt.Sprintf(`"board":%q`, board))
		case f != nil:
			parts = append(parts, fmt.Sprintf(`"board":{"name":%q,"backend":"private","lease":"60s","maxLease":"1s"}`, board))
		}
		if strings.HasSuffix(call, "Tenant") && fields.ByName("name") != nil {
			parts = append(parts, fmt.Sprintf(`"name":%q`, tenantName))
		}
		r := s.do(t, http.MethodPost, path, secret, "{"+strings.Join(parts, ",")+"}")
		body := binaryForm.ReplaceAllString(r.body, "") // which says the same once more
		return r.status, strings.ReplaceAll(strings.ReplaceAll(body, tenantName, "TENANT"), board, "BOARD")
	}
	status, body := about("acme", "nothing")
	if denied := status == http.StatusForbidden; denied == may {
		t.Errorf("%s by %s about its own tenant: %d %s, want allowed %v", call, role, status, body, may)
	}
	if fields.ByName("tenant") == nil && fields.ByName("board") == nil && !strings.HasSuffix(call, "Tenant") {
		return
	}
	status, other := about("umbrella", "private-one")
	absentStatus, absent := about("nonesuch", "private-two")
	if role == tenant.Operator && fields.ByName("tenant") != nil || role == tenant.Operator && strings.HasSuffix(call, "Tenant") {
		return // who stands above tenants sees them
	}
	if status != absentStatus || other != absent {
		t.Errorf("%s by %s: about another's tenant %d %s, about one that does not exist %d %s", call, role, status, other, absentStatus, absent)
	}
	if status == http.StatusOK && (fields.ByName("tenant") != nil) {
		t.Errorf("%s by %s about another's tenant: %s", call, role, other)
	}
}

// TestRolesOfStreams looks at the calls that TestEveryCallEveryRoleEveryTenant
// cannot make.
func TestRolesOfStreams(t *testing.T) {
	t.Parallel()
	for _, methods := range []protoreflect.ServiceDescriptors{boarddv1.File_boardd_v1_boardd_proto.Services(), boarddv1.File_boardd_v1_admin_proto.Services()} {
		for i := range methods.Get(0).Methods().Len() {
			m := methods.Get(0).Methods().Get(i)
			if p := (&tenant.Principal{Roles: []tenant.Role{tenant.Metrics}}); m.IsStreamingServer() && p.May(string(m.Name()), "") {
				t.Errorf("the role metrics may call %s", m.Name())
			}
		}
	}
}

func TestTenantsLife(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	var made struct {
		Tenant struct{ Name, Version string }
	}
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella","limits":{"boards":"2"}}`, &made)
	admin := newToken(t, s, "umbrella", "admin", "tenant-admin")
	worker := newToken(t, s, "umbrella", "ci", "worker", "poster")
	body := s.mustAdmin(t, admin, "CreateBoard", `{"board":{"name":"builds","backend":"store","lease":"45s"}}`, &struct{}{})
	if !strings.Contains(body, `"lease":"45s"`) || !strings.Contains(body, `"tenant":"umbrella"`) {
		t.Errorf("the board is %s", body)
	}
	var posted wireResults
	s.must(t, worker, "PostJobs", `{"board":"builds","jobs":[{"name":"a","uuid":"6f8a1f8e-0f3c-4a55-8a35-000000000001"}]}`, &posted)
	posted.noErrors(t, 1)

	for call, c := range map[string]struct {
		secret, body, code string
	}{
		"a second tenant of the name": {operatorSecret, `CreateTenant {"name":"umbrella"}`, "already_exists"},
		"one of the configuration":    {operatorSecret, `CreateTenant {"name":"acme"}`, "already_exists"},
		"its change":                  {operatorSecret, `UpdateTenant {"name":"acme","limits":{"boards":"1"}}`, "failed_precondition"},
		"an old version":              {operatorSecret, `UpdateTenant {"name":"umbrella","version":"99999"}`, "aborted"},
		"a limit that is none":        {operatorSecret, `UpdateTenant {"name":"umbrella","limits":{"bords":"1"}}`, "invalid_argument"},
		"a name that is none":         {operatorSecret, `CreateTenant {"name":"../umbrella"}`, "invalid_argument"},
		"a homograph":                 {operatorSecret, `CreateTenant {"name":"umbrell\u0430"}`, "invalid_argument"},
		"a token above its maker":     {admin, `CreateToken {"name":"x","roles":["operator"]}`, "permission_denied"},
		"a token without roles":       {admin, `CreateToken {"name":"x"}`, "invalid_argument"},
		"a token that expired":        {admin, `CreateToken {"name":"x","roles":["viewer"],"expiresAt":"2001-01-01T00:00:00Z"}`, "invalid_argument"},
		"a backend of others":         {admin, `CreateBoard {"board":{"name":"b","backend":"private"}}`, "invalid_argument"},
		"a backend that is not there": {admin, `CreateBoard {"board":{"name":"b","backend":"privat"}}`, "invalid_argument"},
		"a place that it chose":       {admin, `CreateBoard {"board":{"name":"b","backend":"store","config":{"namespace":"x"}}}`, "permission_denied"},
		"observing":                   {admin, `CreateBoard {"board":{"name":"b","backend":"store","mode":"observe"}}`, "permission_denied"},
		"a board of that name":        {admin, `CreateBoard {"board":{"name":"builds","backend":"store"}}`, "already_exists"},
		"a lease that is too long":    {admin, `CreateBoard {"board":{"name":"b","backend":"store","lease":"90000s"}}`, "invalid_argument"},
		"another backend":             {admin, `UpdateBoard {"board":{"name":"builds","backend":"private"}}`, "invalid_argument"},
		"running a policy":            {admin, `PromotePolicy {"board":"builds","name":"p"}`, "not_found"},
		"no module":                   {admin, `PutPolicy {"name":"p","module":"bm9uc2Vuc2U="}`, "invalid_argument"},
	} {
		name, body, _ := strings.Cut(c.body, " ")
		status, answer := s.admin(t, c.secret, name, body)
		if status == http.StatusOK || !strings.Contains(answer, `"code":"`+c.code+`"`) {
			t.Errorf("%s: %d %s, want %s", call, status, answer, c.code)
		}
	}
	s.mustAdmin(t, admin, "CreateBoard", `{"board":{"name":"second","backend":"store"}}`, &struct{}{})
	if status, answer := s.admin(t, admin, "CreateBoard", `{"board":{"name":"third","backend":"store"}}`); status != http.StatusTooManyRequests {
		t.Errorf("a board above the limit: %d %s", status, answer)
	}

	s.mustAdmin(t, operatorSecret, "DeleteTenant", `{"name":"umbrella"}`, &struct{}{})
	if status, answer := s.board(t, worker, "ListBoards", `{}`); status != http.StatusUnauthorized {
		t.Errorf("a worker of a tenant that is gone: %d %s", status, answer)
	}
	if status, answer := s.admin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`); !strings.Contains(answer, "already_exists") {
		t.Errorf("its name, while its jobs are kept: %d %s", status, answer)
	}
	s.mustAdmin(t, operatorSecret, "DeleteTenant", `{"name":"umbrella","purge":true}`, &struct{}{})
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{})
	admin = newToken(t, s, "umbrella", "admin", "tenant-admin")
	s.mustAdmin(t, admin, "CreateBoard", `{"board":{"name":"builds","backend":"store"}}`, &struct{}{})
	if body := s.must(t, admin, "ListJobs", `{"board":"builds"}`, &struct{}{}); strings.Contains(body, "000000000001") {
		t.Errorf("the jobs of an earlier tenant of this name: %s", body)
	}
}

// TestBoardsComeAndGo makes, changes and deletes a board while it is used.
func TestBoardsComeAndGo(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	s.mustAdmin(t, acmeSecret, "CreateBoard", `{"board":{"name":"b","backend":"store","lease":"40s"}}`, &struct{}{})
	var posted wireResults
	s.must(t, acmeSecret, "PostJobs", `{"board":"b","jobs":[{"name":"a"}]}`, &posted)
	posted.noErrors(t, 1)

	var settings struct {
		Board struct{ Version, Lease string }
	}
	s.mustAdmin(t, acmeSecret, "UpdateBoard", `{"board":{"name":"b","lease":"50s","maxAttempts":3}}`, &settings)
	eventually(t, "the new lease holds", func() bool {
		var claims wireClaims
		s.must(t, acmeSecret, "ClaimJobs", `{"board":"b","owner":"w"}`, &claims)
		if len(claims.Claims) != 1 {
			t.Fatalf("claims: %+v", claims)
		}
		c := claims.Claims[0]
		s.must(t, acmeSecret, "AbandonJobs", `{"board":"b","claims":[`+c.ref()+`],"refundAttempt":true}`, &posted)
		return c.Lease == "50s"
	})
	if status, answer := s.admin(t, acmeSecret, "UpdateBoard", `{"board":{"name":"b"},"version":"1"}`); !strings.Contains(answer, "aborted") {
		t.Errorf("an old version: %d %s", status, answer)
	}

	ended := s.during(t, acmeSecret, "ClaimJobs", `{"board":"b","owner":"w2","names":["none"],"wait":"50s"}`)
	s.mustAdmin(t, acmeSecret, "DeleteBoard", `{"name":"b"}`, &struct{}{})
	if status, answer := ended(); status != http.StatusNotFound {
		t.Errorf("who waited on the board: %d %s", status, answer)
	}
	if status, answer := s.board(t, acmeSecret, "ListJobs", `{"board":"b"}`); status != http.StatusNotFound {
		t.Errorf("a board that is gone: %d %s", status, answer)
	}
	s.mustAdmin(t, acmeSecret, "CreateBoard", `{"board":{"name":"b","backend":"store"}}`, &struct{}{})
	var list struct{ Jobs []wireJob }
	s.must(t, acmeSecret, "ListJobs", `{"board":"b"}`, &list)
	if len(list.Jobs) != 1 {
		t.Errorf("made again it has %d jobs, want the one that it had", len(list.Jobs))
	}
	s.mustAdmin(t, acmeSecret, "DeleteBoard", `{"name":"b","purge":true}`, &struct{}{})
	s.mustAdmin(t, acmeSecret, "CreateBoard", `{"board":{"name":"b","backend":"store"}}`, &struct{}{})
	s.must(t, acmeSecret, "ListJobs", `{"board":"b"}`, &list)
	if len(list.Jobs) != 0 {
		t.Errorf("purged and made again it has %d jobs", len(list.Jobs))
	}
}

// TestRevocationEndsWhatGoesOn: a call that waits in the name of a revoked token
// ends, and with it what would have been given to it.
func TestRevocationEndsWhatGoesOn(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	worker := newToken(t, s, "acme", "w", "worker")
	waiting := s.during(t, worker, "ClaimJobs", `{"board":"default","owner":"w","wait":"50s"}`)
	working := s.during(t, worker, "Work", `{"board":"default","owner":"w","wait":"50s"}`)
	watching := s.during(t, worker, "ListEvents", `{"board":"default","wait":"50s"}`)
	s.mustAdmin(t, acmeSecret, "RevokeToken", `{"name":"w"}`, &struct{}{})
	for what, ended := range map[string]func() (int, string){"a claim": waiting, "a worker": working, "a watcher": watching} {
		if status, answer := ended(); status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, status, answer)
		}
	}
	if status, _ := s.board(t, worker, "ListBoards", `{}`); status != http.StatusUnauthorized {
		t.Errorf("the token is still good: %d", status)
	}
	if status, answer := s.admin(t, acmeSecret, "RevokeToken", `{"name":"w"}`); status != http.StatusNotFound {
		t.Errorf("once more: %d %s", status, answer)
	}
	if status, answer := s.admin(t, acmeSecret, "RevokeToken", `{"name":"acme"}`); !strings.Contains(answer, "failed_precondition") {
		t.Errorf("a token of the configuration: %d %s", status, answer)
	}
}

// TestTokenExpiresUnderACall: so does one that expires.
func TestTokenExpiresUnderACall(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	var made struct{ Secret string }
	s.mustAdmin(t, acmeSecret, "CreateToken", fmt.Sprintf(`{"name":"brief","roles":["worker"],"boards":["default"],"expiresAt":%q}`,
		time.Now().Add(2*time.Second).UTC().Format(time.RFC3339Nano)), &made)
	status, answer := s.board(t, made.Secret, "ClaimJobs", `{"board":"default","owner":"w","wait":"50s"}`)
	if status != http.StatusUnauthorized || !strings.Contains(answer, "expired") {
		t.Errorf("got %d %s", status, answer)
	}
}

func TestAuditOfAdminAndRefusals(t *testing.T) {
	t.Parallel()
	const canary = "canary-in-the-details"
	c := hosted(t)
	c.Audit.Calls = config.AuditAll
	s := serveWith(t, c, quiet())
	s.mustAdmin(t, operatorSecret, "CreateTenant", `{"name":"umbrella"}`, &struct{}{})
	secret := newToken(t, s, "umbrella", "ci", "poster")
	s.call(t, "no-such-secret-"+canary, "ListBoards", `{}`)
	s.admin(t, secret, "CreateTenant", `{"name":"mine"}`)
	s.must(t, posterSecret, "PostJobs", `{"board":"default","jobs":[{"name":"x","details":{"a":"`+canary+`"}},{"name":""}]}`, &wireResults{})

	var log struct {
		Records []struct{ Sequence, Call, Tenant, Name, Caller, Result, Items, Failed string }
		Next    string
	}
	var text string
	want := []string{
		"CreateTenant//umbrella/operator/ok", "CreateToken/umbrella/ci/operator/ok", "ListBoards////unauthenticated",
		"CreateTenant/umbrella//ci/permission_denied", "PostJobs/default//poster/ok",
	}
	var got []string
	eventually(t, "every call is in the audit log", func() bool {
		text = s.mustAdmin(t, operatorSecret, "GetAudit", `{"all":true,"max":1000}`, &log)
		got = nil
		for _, r := range log.Records {
			got = append(got, strings.Join([]string{r.Call, r.Tenant, r.Name, r.Caller, r.Result}, "/"))
			if r.Call == "PostJobs" && (r.Items != "2" || r.Failed != "1") {
				t.Errorf("the post of two jobs, one of which is wrong: %+v", r)
			}
		}
		return len(got) >= len(want)
	})
	want[0] = "CreateTenant/default/umbrella/operator/ok"
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("the audit log has no %s:\n%s", line, strings.Join(got, "\n"))
		}
	}
	for _, no := range []string{canary, secret} {
		if strings.Contains(text, no) {
			t.Errorf("the audit log holds %s", no)
		}
	}
	own := s.mustAdmin(t, acmeSecret, "GetAudit", `{}`, &log)
	if len(log.Records) != 0 {
		t.Errorf("acme sees %s", own)
	}
	if status, answer := s.admin(t, acmeSecret, "GetAudit", `{"all":true}`); status != http.StatusForbidden {
		t.Errorf("a tenant asks for all: %d %s", status, answer)
	}
	if status, answer := s.admin(t, operatorSecret, "GetAudit", `{"max":1001}`); status != http.StatusBadRequest {
		t.Errorf("too large a page: %d %s", status, answer)
	}
}

// An import of nothing does not make what the store has the catalog.
func TestImportOfNothing(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	if status, answer := s.admin(t, operatorSecret, "ImportCatalog", `{"accept":true}`); status != http.StatusBadRequest || !strings.Contains(answer, "want at least one with accept") {
		t.Errorf("%d %s, want INVALID", status, answer)
	}
	s.mustAdmin(t, operatorSecret, "ImportCatalog", `{}`, &struct{}{})
}

func TestNoCatalog(t *testing.T) {
	t.Parallel()
	c := hosted(t)
	c.Catalog, c.DataDir = "", ""
	s := serveWith(t, c, quiet())
	for call, body := range map[string]string{"CreateTenant": `{"name":"x"}`, "CreateToken": `{"name":"x","roles":["viewer"]}`, "GetAudit": "{}"} {
		if status, answer := s.admin(t, operatorSecret, call, body); !strings.Contains(answer, "failed_precondition") || !strings.Contains(answer, "data_dir") {
			t.Errorf("%s: %d %s", call, status, answer)
		}
	}
	s.mustAdmin(t, operatorSecret, "ListTenants", `{}`, &struct{}{})
}

// TestTwoServersWithOneFolder: the second one changes nothing, since it cannot say
// what it did, and says why.
func TestTwoServersWithOneFolder(t *testing.T) {
	t.Parallel()
	c := settings()
	c.DataDir = t.TempDir()
	first := serveWith(t, c, quiet())
	second := serveWith(t, c, quiet())
	post(t, first, "a")
	if status, answer := second.board(t, rootSecret, "PostJobs", `{"board":"default","jobs":[{"name":"x"}]}`); status != http.StatusServiceUnavailable || !strings.Contains(answer, "audit log") {
		t.Errorf("the second server: %d %s", status, answer)
	}
	if body := second.must(t, rootSecret, "ListJobs", `{"board":"default"}`, nil); strings.Contains(body, `"name":"x"`) {
		t.Errorf("it made the change all the same: %s", body)
	}
	post(t, first, "b")
}
