package tenant_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/boardd/boardd/host/tenant"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

const secret = "0123456789abcdef"

func registry(t *testing.T, tokens ...tenant.Token) *tenant.Registry {
	t.Helper()
	r, err := tenant.NewRegistry(tokens)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// want says, in words of its own, which role may make which call: the columns
// are viewer, poster, worker, policy-author, tenant-admin, operator, metrics,
// support.
var want = map[string]string{
	"GetLog":          "v p w a t o - s",
	"ReadLog":         "v p w a t o - s",
	"GetBook":         "v p w a t o - s",
	"CancelJobs":      "- p - - t o - -",
	"ChangePriority":  "- p - - t o - -",
	"PutBook":         "- p - - t o - -",
	"StartOperation":  "- - w - t o - -",
	"FinishOperation": "- - w - t o - -",
	"MarkOperations":  "- - w - t o - -",
	"AppendLog":       "- - w - t o - -",
	"ArchiveJobs":     "- - - - t o - -",

	"WhoAmI":         "v p w a t o m s",
	"GetJobs":        "v p w a t o - s",
	"ListJobs":       "v p w a t o - s",
	"CountJobs":      "v p w a t o - s",
	"WatchBoard":     "v p w a t o - s",
	"ListEvents":     "v p w a t o - s",
	"ExplainJob":     "v p w a t o - s",
	"ListEntities":   "v p w a t o - s",
	"ListBoards":     "v p w a t o - s",
	"GetBoard":       "v p w a t o - s",
	"PostJobs":       "- p - - t o - -",
	"ClaimJobs":      "- - w - t o - -",
	"Work":           "- - w - t o - -",
	"ExtendClaims":   "- - w - t o - -",
	"ConsumeJobs":    "- - w - t o - -",
	"AbandonJobs":    "- - w - t o - -",
	"TrashJobs":      "- - w - t o - -",
	"RegisterEntity": "- - w - t o - -",
	"RemoveEntity":   "- - w - t o - -",
	"RestoreJobs":    "- - - - t o - -",

	"ListSchedules":   "v p w a t o - s",
	"GetSchedule":     "v p w a t o - s",
	"PutSchedule":     "- p - - t o - -",
	"DeleteSchedule":  "- p - - t o - -",
	"PauseSchedule":   "- p - - t o - -",
	"ResumeSchedule":  "- p - - t o - -",
	"TriggerSchedule": "- p - - t o - -",

	"ListBatches": "v p w a t o - s",
	"GetBatch":    "v p w a t o - s",
	"PutBatch":    "- p - - t o - -",
	"CloseBatch":  "- p - - t o - -",

	"PurgeJobs":   "- - - - t o - -",
	"ReleaseJobs": "- - - - t o - -",
	"PostAsItWas": "- - - - t o - -",
	"PauseBoard":  "- - - - t o - -",
	"ResumeBoard": "- - - - t o - -",

	"AcknowledgeLoss": "- - - - t o - -",

	"GET /metrics": "- - - - - o m -",

	"GET /debug/pprof/": "- - - - - o - -",

	"CreateTenant":     "- - - - - o - -",
	"UpdateTenant":     "- - - - - o - -",
	"DeleteTenant":     "- - - - - o - -",
	"ReloadConfig":     "- - - - - o - -",
	"ListPlaces":       "- - - - - o - -",
	"ListServers":      "- - - - - o - -",
	"DrainServer":      "- - - - - o - -",
	"ReleasePlace":     "- - - - - o - -",
	"BackupBackend":    "- - - - - o - -",
	"GetCatalog":       "- - - - - o - -",
	"AcceptCatalog":    "- - - - - o - -",
	"ExportCatalog":    "- - - - - o - -",
	"ImportCatalog":    "- - - - - o - -",
	"ListTenants":      "- - - - t o - -",
	"CreateToken":      "- - - - t o - -",
	"ListTokens":       "- - - - t o - -",
	"RevokeToken":      "- - - - t o - -",
	"CreateBoard":      "- - - - t o - -",
	"UpdateBoard":      "- - - - t o - -",
	"DeleteBoard":      "- - - - t o - -",
	"ListTenantBoards": "- - - - t o - -",
	"ExportBoard":      "- - - - t o - -",
	"ImportBoard":      "- - - - t o - -",
	"MoveBoard":        "- - - - t o - -",
	"GetMove":          "- - - - t o - -",
	"AbandonMove":      "- - - - t o - -",
	"ListBackends":     "- - - - t o - -",
	"GetAudit":         "- - - - t o - -",
	"PutWebhook":       "- - - - t o - -",
	"GetWebhook":       "- - - - t o - -",
	"ListWebhooks":     "- - - - t o - -",
	"DeleteWebhook":    "- - - - t o - -",
	"PauseWebhook":     "- - - - t o - -",
	"ResumeWebhook":    "- - - - t o - -",
	"TestWebhook":      "- - - - t o - -",
	"PutPolicy":        "- - - a t o - -",
	"ListPolicies":     "- - - a t o - -",
	"DeletePolicy":     "- - - a t o - -",
	"SimulatePolicy":   "- - - a t o - -",
	"ShadowPolicy":     "- - - a t o - -",
	"PromotePolicy":    "- - - a t o - -",
	"RollbackPolicy":   "- - - a t o - -",
}

func TestMay(t *testing.T) {
	t.Parallel()
	for call, line := range want {
		for i, mark := range strings.Fields(line) {
			role := tenant.Roles()[i]
			p := &tenant.Principal{Tenant: "acme", TokenName: "ci", Roles: []tenant.Role{role}}
			if got := p.May(call, "octavia"); got != (mark != "-") {
				t.Errorf("%s with role %s: May is %v, want %v", call, role, got, !got)
			}
		}
	}
}

func TestEveryCallHasALine(t *testing.T) {
	t.Parallel()
	all := tenant.Principal{Roles: tenant.Roles()}
	found := 0
	for _, file := range []protoreflect.FileDescriptor{boarddv1.File_boardd_v1_boardd_proto, boarddv1.File_boardd_v1_admin_proto} {
		services := file.Services()
		for i := range services.Len() {
			methods := services.Get(i).Methods()
			for j := range methods.Len() {
				found++
				call := string(methods.Get(j).Name())
				if !all.May(call, "") {
					t.Errorf("%s has no line in the table of calls: nobody may make it", call)
				}
				if _, ok := want[call]; !ok {
					t.Errorf("%s has no line in this test", call)
				}
			}
		}
	}
	if found != len(want)-2 { // those that are no calls
		t.Errorf("the proto has %d calls, this test has lines for %d", found, len(want)-2)
	}
}

func TestUnknownCallIsDenied(t *testing.T) {
	t.Parallel()
	all := tenant.Principal{Roles: tenant.Roles()}
	for _, call := range []string{"", "getjobs", "DropEverything"} {
		if all.May(call, "") {
			t.Errorf("May(%q) is true", call)
		}
	}
}

func TestBoundToBoards(t *testing.T) {
	t.Parallel()
	bound := tenant.Principal{TokenName: "ci", Roles: []tenant.Role{tenant.Operator}, Boards: []string{"a", "b"}}
	for board, ok := range map[string]bool{"a": true, "b": true, "c": false, "": true} {
		if got := bound.May("GetJobs", board); got != ok {
			t.Errorf("board %q: May is %v, want %v", board, got, ok)
		}
	}
	err := bound.Check("GetJobs", "c")
	if !errors.Is(err, job.PermissionDenied) {
		t.Fatalf("got %v, want %v", err, job.PermissionDenied)
	}
	if got, want := err.Error(), `token "ci" is bound to the boards [a, b], and "c" is none of them`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCheckNamesTheRolesThatWouldDo(t *testing.T) {
	t.Parallel()
	p := tenant.Principal{TokenName: "ci", Roles: []tenant.Role{tenant.Viewer, tenant.Poster}}
	err := p.Check("ClaimJobs", "octavia")
	if !errors.Is(err, job.PermissionDenied) {
		t.Fatalf("got %v, want %v", err, job.PermissionDenied)
	}
	want := `token "ci" has the roles [viewer, poster]; ClaimJobs needs one of [worker, tenant-admin, operator]`
	if got := err.Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestCheckNamesATokenThatWouldDo: who only looks at another tenant's boards is told what to
// change them with.
func TestCheckNamesATokenThatWouldDo(t *testing.T) {
	t.Parallel()
	p := tenant.Passed{TokenName: "root", Tenant: "acme", Home: "default", Roles: []tenant.Role{tenant.Operator}}.Principal()
	want := `token "root" only looks at the boards of the tenant "acme": it may not call PostJobs there; ` +
		`a token of that tenant may (boardd token create NAME --tenant acme --role poster)`
	if err := p.Check("PostJobs", ""); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	r := registry(t,
		tenant.Token{Name: "ci", Tenant: "acme", Roles: []tenant.Role{tenant.Poster}, Boards: []string{"octavia"}, Digest: tenant.DigestOf(secret)},
		tenant.Token{Name: "ci", Roles: []tenant.Role{tenant.Worker}, Digest: tenant.DigestOf(secret + "2")},
	)
	for in, want := range map[string]tenant.Principal{
		secret:       {Tenant: "acme", TokenName: "ci", Roles: []tenant.Role{tenant.Poster}, Boards: []string{"octavia"}},
		secret + "2": {Tenant: "default", TokenName: "ci", Roles: []tenant.Role{tenant.Worker}},
	} {
		got, err := r.Authenticate(in)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, *got, cmpopts.IgnoreUnexported(want)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestAuthenticateRefuses(t *testing.T) {
	t.Parallel()
	r := registry(t, tenant.Token{Name: "ci", Roles: tenant.Roles(), Digest: tenant.DigestOf(secret)})
	digest := tenant.DigestOf(secret)
	messages := map[string]bool{}
	for _, in := range []string{"x", secret[1:], secret + " ", strings.ToUpper(secret), string(digest[:]), fmt.Sprintf("%x", digest), strings.Repeat("a", tenant.MaxSecret+1)} {
		p, err := r.Authenticate(in)
		if !errors.Is(err, job.Unauthenticated) || p != nil {
			t.Errorf("%.20q: got %v, %v, want %v", in, p, err, job.Unauthenticated)
			continue
		}
		messages[err.Error()] = true
	}
	if len(messages) != 1 {
		t.Errorf("a refusal tells what was wrong: %v", messages)
	}
	if _, err := r.Authenticate(""); !errors.Is(err, job.Unauthenticated) {
		t.Errorf("no secret: got %v, want %v", err, job.Unauthenticated)
	}
	if _, err := new(tenant.Registry).Authenticate(secret); !errors.Is(err, job.Unauthenticated) {
		t.Errorf("empty registry: got %v, want %v", err, job.Unauthenticated)
	}
}

func TestNewRegistryRefuses(t *testing.T) {
	t.Parallel()
	a := tenant.Token{Name: "a", Digest: tenant.DigestOf("a")}
	for name, tokens := range map[string][]tenant.Token{
		"no secret":    {{Name: "a"}},
		"a name twice": {a, {Name: "a", Tenant: tenant.Default, Digest: tenant.DigestOf("b")}},
		"same secret":  {a, {Name: "b", Digest: tenant.DigestOf("a")}},
		"unknown role": {{Name: "a", Roles: []tenant.Role{"root"}, Digest: tenant.DigestOf("a")}},
	} {
		if _, err := tenant.NewRegistry(tokens); !errors.Is(err, job.Invalid) {
			t.Errorf("%s: got %v, want %v", name, err, job.Invalid)
		}
	}
}

func TestRegistryKeepsItsOwnCopy(t *testing.T) {
	t.Parallel()
	token := tenant.Token{Name: "a", Roles: []tenant.Role{tenant.Viewer}, Boards: []string{"x"}, Digest: tenant.DigestOf(secret)}
	r := registry(t, token)
	token.Roles[0], token.Boards[0] = tenant.Operator, "y"
	p, err := r.Authenticate(secret)
	if err != nil {
		t.Fatal(err)
	}
	if p.May("PurgeJobs", "x") || p.May("GetJobs", "y") {
		t.Errorf("the caller's slices changed a principal: %+v", p)
	}
}

func TestParseRole(t *testing.T) {
	t.Parallel()
	for _, role := range tenant.Roles() {
		if got, err := tenant.ParseRole(string(role)); err != nil || got != role {
			t.Errorf("ParseRole(%q) = %q, %v", role, got, err)
		}
	}
	_, err := tenant.ParseRole("wroker")
	if !errors.Is(err, job.Invalid) || !strings.Contains(err.Error(), `did you mean "worker"?`) {
		t.Errorf("got %v", err)
	}
}

func TestCheckSecret(t *testing.T) {
	t.Parallel()
	type verdicts struct{ Real, Dev bool }
	for in, want := range map[string]verdicts{
		"":                                      {false, false},
		"short":                                 {false, true},
		secret[1:]:                              {false, true},
		secret:                                  {true, true},
		secret + "\n":                           {false, false},
		secret + " x":                           {false, false},
		secret + "ä":                            {false, false},
		strings.Repeat("x", tenant.MaxSecret):   {true, true},
		strings.Repeat("x", tenant.MaxSecret+1): {false, false},
	} {
		strict, dev := tenant.CheckSecret(in, false), tenant.CheckSecret(in, true)
		if got := (verdicts{strict == nil, dev == nil}); got != want {
			t.Errorf("%.20q: got %v (%v, %v), want %v", in, got, strict, dev, want)
		}
		for _, err := range []error{strict, dev} {
			if err != nil && in != "" && strings.Contains(err.Error(), in) {
				t.Errorf("the message repeats the secret: %v", err)
			}
		}
	}
}

// TestRoutine: what posters and workers do all day is told from what people do.
func TestRoutine(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]bool{
		"PostJobs": true, "ClaimJobs": true, "ConsumeJobs": true, "AppendLog": true, "CancelJobs": true,
		"PauseBoard": false, "PurgeJobs": false, "CreateToken": false, "PromotePolicy": false, "ListJobs": false, "nothing": false,
	} {
		if tenant.Routine(call) != want {
			t.Errorf("%s: %v", call, !want)
		}
	}
}
