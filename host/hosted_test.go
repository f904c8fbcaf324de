package host_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/auditor"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

const operatorSecret = "the-secret-of-an-operator"

// cataloged is a configuration whose catalog is on the backend "store".
func cataloged(dataDir string, boards ...config.Board) config.Config {
	c := oneBackend(dataDir, boards...)
	c.Catalog = "store"
	c.Backends[0].Tenants = []string{"acme"}
	c.Tokens = append(c.Tokens, tenant.Token{Name: "operator", Roles: []tenant.Role{tenant.Operator}, Digest: tenant.DigestOf(operatorSecret)})
	return c
}

func operator(t *testing.T, h *host.Host) *admin.Session {
	t.Helper()
	s, err := login(t.Context(), h, operatorSecret)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestHostsShareACatalog: what is made through one host holds on the other.
func TestHostsShareACatalog(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	first, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers})
	second, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers})
	ctx := within(t)
	op := operator(t, first)
	if _, err := op.CreateTenant(ctx, "acme", config.Limits{Boards: 3}); err != nil {
		t.Fatal(err)
	}
	_, secret, err := op.CreateToken(ctx, admin.NewToken{Tenant: "acme", Name: "admin", Roles: []string{"tenant-admin"}})
	if err != nil {
		t.Fatal(err)
	}
	var s *admin.Session
	eventually(t, "the token lets in on the other host", func() bool {
		s, err = login(ctx, second, secret)
		return err == nil
	})
	b := config.NewBoard("builds")
	b.Backend = "store"
	if _, err := s.CreateBoard(ctx, "", b); err != nil {
		t.Fatal(err)
	}
	if err := use(ctx, s, "builds"); err != nil {
		t.Errorf("on the host that made the board: %v", err)
	}
	other, err := login(ctx, first, secret)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the board is served on the other host", func() bool { return use(ctx, other, "builds") == nil })

	call, release := other.Begin(ctx)
	defer release()
	if err := s.RevokeToken(ctx, "", "admin"); err != nil { // its own
		t.Fatal(err)
	}
	select {
	case <-call.Done():
		if err := context.Cause(call); !errors.Is(err, job.Unauthenticated) {
			t.Errorf("the call ended with %v", err)
		}
	case <-ctx.Done():
		t.Error("a call goes on in the name of a token that was revoked on the other host")
	}
	if err := other.Check("WhoAmI"); !errors.Is(err, job.Unauthenticated) {
		t.Errorf("a session that outlived its token: %v", err)
	}
	if err := op.DeleteTenant(ctx, "acme", 0, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its boards are gone", func() bool {
		return first.Serves() == 0 && second.Serves() == 0
	})
}

// TestHostsThatDisagree: the second host with other settings for a board does not
// serve it, and says why.
func TestHostsThatDisagree(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	_, s := open(t, host.Config{Config: cataloged("", board("a", "store")), Drivers: drivers})
	if err := use(within(t), s, "a"); err != nil {
		t.Fatal(err)
	}
	different := board("a", "store")
	different.Lease = 77 * time.Second
	var l log
	_, other := open(t, host.Config{Config: cataloged("", different, board("b", "store")), Drivers: drivers, Logger: l.logger()})
	if err := use(within(t), other, "b"); err != nil {
		t.Errorf("another board: %v", err)
	}
	if _, err := other.Board(within(t), "a", "PostJobs"); !errors.Is(err, job.Unavailable) {
		t.Errorf("got %v", err)
	}
	eventually(t, "the log names both values", func() bool { return strings.Contains(l.String(), "lease is 1m17s here and 30s there") })
}

// TestOnePlaceOneBoard: a second configuration that puts another board at the
// same place is refused it.
func TestOnePlaceOneBoard(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	program := drivers["memory"]
	program.Info.Board = driver.Schema{Fields: []driver.Field{{Name: "namespace", Type: driver.String}}}
	drivers["memory"] = program
	at := func(name, namespace string) config.Board {
		b := board(name, "store")
		b.Settings = []byte(`{"namespace":"` + namespace + `"}`)
		return b
	}
	_, s := open(t, host.Config{Config: cataloged("", at("a", "x")), Drivers: drivers})
	if err := use(within(t), s, "a"); err != nil {
		t.Fatal(err)
	}
	var l log
	h, other := open(t, host.Config{Config: cataloged("", at("b", "x"), at("c", "y")), Drivers: drivers, Logger: l.logger()})
	if err := use(within(t), other, "c"); err != nil {
		t.Errorf("a board at a place of its own: %v", err)
	}
	if _, err := other.Board(within(t), "b", "PostJobs"); !errors.Is(err, job.Unavailable) {
		t.Errorf("two boards at one place: %v", err)
	}
	op := operator(t, h)
	if _, err := op.CreateTenant(within(t), "acme", config.Limits{}); err != nil {
		t.Fatal(err)
	}
	b := at("d", "x")
	if _, err := op.CreateBoard(within(t), "acme", b); !errors.Is(err, job.Precondition) || !strings.Contains(err.Error(), "default/a") {
		t.Errorf("an operator is told %v", err)
	}
	_, secret, err := op.CreateToken(within(t), admin.NewToken{Tenant: "acme", Name: "admin", Roles: []string{"tenant-admin"}})
	if err != nil {
		t.Fatal(err)
	}
	b = at("taken", "boardd:{acme/e}")
	if _, err := op.CreateBoard(within(t), "", b); err != nil {
		t.Fatal(err)
	}
	ofTenant, err := login(t.Context(), h, secret)
	if err != nil {
		t.Fatal(err)
	}
	b = config.NewBoard("e")
	b.Backend = "store"
	if _, err := ofTenant.CreateBoard(within(t), "", b); !errors.Is(err, job.Precondition) || strings.Contains(err.Error(), "default") {
		t.Errorf("a tenant is told %v", err)
	}
	b.Name = "f"
	made, err := ofTenant.CreateBoard(within(t), "", b)
	if err != nil || string(made.Settings) != `{"namespace":"boardd:{acme/f}"}` {
		t.Errorf("the board's place is %s, %v", made.Settings, err)
	}
}

// TestReload changes what the configuration says under a running server.
func TestReload(t *testing.T) {
	t.Parallel()
	present := cataloged(t.TempDir(), board("a", "store"), board("b", "store"))
	next := present
	var refuse error
	h, s := open(t, host.Config{
		Config: present, Drivers: oneStore(t, false),
		Load: func() (*config.Config, error) {
			c := next
			return &c, refuse
		},
	})
	ctx := within(t)
	if err := use(ctx, s, "a"); err != nil {
		t.Fatal(err)
	}
	changed := board("a", "store")
	changed.Lease = 45 * time.Second
	next.Boards = []config.Board{changed, board("c", "store")}
	next.Tokens = append([]tenant.Token{{Name: "new", Roles: []tenant.Role{tenant.Viewer}, Digest: tenant.DigestOf("a-secret-of-the-reload")}}, present.Tokens...)
	changes, err := h.Reload(ctx)
	want := "token default/new: added, board default/a: changed, board default/b: removed, board default/c: added"
	if got := strings.Join(changes, ", "); err != nil || !strings.HasSuffix(got, "board default/a: changed, board default/b: removed, board default/c: added") || !strings.Contains(got, "new: added") {
		t.Fatalf("got %s (%v), want %s", got, err, want)
	}
	if err := use(ctx, s, "c"); err != nil {
		t.Errorf("the new board: %v", err)
	}
	if err := use(ctx, s, "b"); !errors.Is(err, job.NotFound) {
		t.Errorf("the board that is gone: %v", err)
	}
	if _, err := h.Login(ctx, "a-secret-of-the-reload"); err != nil {
		t.Errorf("the new token: %v", err)
	}
	eventually(t, "the new lease holds", func() bool {
		if err := use(ctx, s, "a"); err != nil { // never refused meanwhile
			t.Fatal(err)
		}
		d, err := s.Describe(t.Context(), "a", "GetBoard")
		return err == nil && d.Config.Lease == 45*time.Second
	})

	next.Boards = slices.Clone(next.Boards)
	next.Boards[1].Webhooks = []webhook.Hook{{Name: "hook", Paused: true}}
	if changes, err := h.Reload(ctx); err != nil || !slices.Equal(changes, []string{"board default/c: changed"}) {
		t.Errorf("with a webhook of its own: %v, %v", changes, err)
	}
	next.Listen = "127.0.0.1:1"
	if _, err := h.Reload(ctx); !errors.Is(err, job.Precondition) || !strings.Contains(err.Error(), "listen") {
		t.Errorf("another address: %v", err)
	}
	refuse = job.Errorf(job.Invalid, "a.hcl:3,1: this is wrong")
	if _, err := h.Reload(ctx); !errors.Is(err, job.Invalid) || strings.Count(err.Error(), "a.hcl:3,1") != 1 {
		t.Errorf("a configuration that is wrong: %v", err)
	}
	if err := use(ctx, s, "c"); err != nil {
		t.Errorf("after a reload that failed: %v", err)
	}
}

// TestReloadOfABoardThatGoes: a board that a reload replaced, and the next one took away, does not
// take the calls any longer that began before.
func TestReloadOfABoardThatGoes(t *testing.T) {
	t.Parallel()
	next := oneBackend("", board("a", "store"))
	h, s := open(t, host.Config{Config: next, Drivers: oneStore(t, false), Load: func() (*config.Config, error) { c := next; return &c, nil }})
	ctx, release := s.Begin(within(t))
	defer release()
	b, err := s.Board(ctx, "a", "ClaimJobs")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := b.Claim(ctx, hostboard.ClaimRequest{Owner: "w", Wait: hostboard.MaxWait})
		ended <- err
	}()
	a := board("a", "store")
	a.Lease = 45 * time.Second
	next.Boards = []config.Board{a}
	if _, err := h.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new board takes calls", func() bool {
		d, err := s.Describe(t.Context(), "a", "GetBoard")
		return err == nil && d.Config.Lease == a.Lease
	})
	next.Boards = nil
	if _, err := h.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "there is no board") {
		t.Errorf("a claim that waits on a board which is gone: %v", err)
	}
}

// TestReloadAfterAFailedStart has a driver start on a reload that could not before.
func TestReloadAfterAFailedStart(t *testing.T) {
	t.Parallel()
	present := oneBackend("", board("a", "store"))
	program := memdriver.Program()
	open, refuses := program.Open, atomic.Bool{}
	refuses.Store(true)
	program.Open = func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		if refuses.Load() {
			return nil, job.Errorf(job.Invalid, "its tables are those of an older version")
		}
		return open(ctx, c)
	}
	h, err := host.Open(t.Context(), host.Config{
		Config: present, Drivers: map[string]driver.Program{"memory": program}, Logger: slog.New(slog.DiscardHandler),
		Load: func() (*config.Config, error) { return &present, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := login(t.Context(), h, secret)
	if err != nil {
		t.Fatal(err)
	}
	ctx := within(t)
	if err := use(ctx, s, "a"); job.KindOf(err) != job.Unavailable {
		t.Errorf("on a store that cannot be opened: %v", err)
	}
	refuses.Store(false)
	changes, err := h.Reload(ctx)
	if err != nil || !slices.Contains(changes, "backend store: its driver, which did not start, is started again") {
		t.Fatalf("the reload changed %q, %v", changes, err)
	}
	if err := use(ctx, s, "a"); err != nil {
		t.Errorf("on a store that can be opened since: %v", err)
	}
}

// TestReloadedBackend gives a backend other settings.
func TestReloadedBackend(t *testing.T) {
	t.Parallel()
	present := oneBackend("", board("a", "store"))
	next := present
	h, s := open(t, host.Config{
		Config: present, Drivers: oneStore(t, false),
		Load: func() (*config.Config, error) { c := next; return &c, nil },
	})
	ctx := within(t)
	if err := use(ctx, s, "a"); err != nil {
		t.Fatal(err)
	}
	next.Backends = []config.Backend{{Name: "store", Driver: "memory", Settings: []byte(`{ }`)}}
	if _, err := h.Reload(ctx); err != nil {
		t.Fatal(err)
	}
	if err := use(ctx, s, "a"); err != nil {
		t.Errorf("on the driver that was started anew: %v", err)
	}
}

// TestReloadedBackendOfACatalogBoard has a server configured with a backend that boards of its
// catalog are on already.
func TestReloadedBackendOfACatalogBoard(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	next := cataloged("")
	next.Backends = append(next.Backends, config.Backend{Name: "later", Driver: "memory", Settings: []byte(`{}`), Tenants: []string{"acme"}})
	first, _ := open(t, host.Config{Config: next, Drivers: drivers})
	op := operator(t, first)
	if _, err := op.CreateTenant(within(t), "acme", config.Limits{}); err != nil {
		t.Fatal(err)
	}
	_, token, err := op.CreateToken(within(t), admin.NewToken{Tenant: "acme", Name: "t", Roles: []string{"poster", "worker"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		b := config.NewBoard(name)
		b.Backend = "later"
		if _, err := op.CreateBoard(within(t), "acme", b); err != nil {
			t.Fatal(err)
		}
	}
	second, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers, Load: func() (*config.Config, error) { c := next; return &c, nil }})
	var s *admin.Session
	eventually(t, "the second host has read the catalog", func() bool {
		s, err = login(t.Context(), second, token)
		return err == nil
	})
	if err := use(within(t), s, "a"); job.KindOf(err) != job.Unavailable {
		t.Errorf("on a backend that the server does not know: %v", err)
	}
	if _, err := second.Reload(within(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} { // called before, and not
		if err := use(within(t), s, name); err != nil {
			t.Errorf("board %s on the backend that it knows since: %v", name, err)
		}
	}
}

// gated is a store whose boards open once it lets them.
type gated struct {
	driver.Driver
	open chan struct{}
}

// OpenBoard waits.
func (d *gated) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	select {
	case <-d.open:
		return d.Driver.OpenBoard(ctx, spec)
	case <-ctx.Done():
		return driver.BoardStatus{}, job.Errorf(job.Interrupted, "it was not let in")
	}
}

// TestReloadedBackendOfABoardThatComes gives a backend other settings while a board changes to it.
func TestReloadedBackendOfABoardThatComes(t *testing.T) {
	t.Parallel()
	var made []*gated
	gate := memdriver.Program()
	openStore := gate.Open
	gate.Open = func(ctx context.Context, c driver.Config) (driver.Driver, error) {
		d, err := openStore(ctx, c)
		made = append(made, &gated{d, make(chan struct{})})
		return made[len(made)-1], err
	}
	drivers := oneStore(t, false)
	drivers["gated"] = gate
	next := oneBackend("", board("a", "store"))
	h, s := open(t, host.Config{Config: next, Drivers: drivers, Load: func() (*config.Config, error) { c := next; return &c, nil }})
	if err := use(within(t), s, "a"); err != nil {
		t.Fatal(err)
	}
	for i, settings := range []string{`{}`, `{ }`} {
		next.Backends = []config.Backend{next.Backends[0], {Name: "gate", Driver: "gated", Settings: []byte(settings)}}
		next.Boards = []config.Board{board("a", "gate")}
		if _, err := h.Reload(within(t)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the driver was started", func() bool { return h.BackendProblem(t.Context(), "gate", true) == nil && len(made) == i+1 })
	}
	close(made[1].open)
	eventually(t, "the board is on the backend as it is now", func() bool {
		d, err := s.Describe(t.Context(), "a", "GetBoard")
		return err == nil && d.Config.Backend == "gate"
	})
	if err := use(within(t), s, "a"); err != nil {
		t.Error(err)
	}
}

// TestDidIsInTheAuditLog: what somebody did in another way than by the API.
func TestDidIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	h, s := open(t, host.Config{Config: cataloged(t.TempDir(), board("a", "store")), Drivers: oneStore(t, false)})
	denied := job.Errorf(job.PermissionDenied, "no")
	trashed := admin.Deed{Call: "TrashJobs", Board: "a", Remote: "1.2.3.4:5", Items: 7, Failed: 2}
	paused := admin.Deed{Call: "PauseBoard", Board: "a", Remote: "1.2.3.4:5"}
	for _, err := range []error{s.Did(trashed, nil), s.Did(paused, denied), h.Auditor().RefusedLogin("SignIn", "1.2.3.4:5", job.Unauthenticated)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	page, err := operator(t, h).Audit(within(t), auditor.Query{All: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range page.Records {
		got = append(got, strings.Join([]string{r.Call, r.Board, r.Caller, r.Result, r.Remote}, " "))
	}
	want := "TrashJobs a root ok 1.2.3.4:5, PauseBoard a root permission_denied 1.2.3.4:5, SignIn   unauthenticated 1.2.3.4:5"
	if strings.Join(got, ", ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ", "), want)
	}
	if r := page.Records[0]; r.Items != 7 || r.Failed != 2 {
		t.Errorf("%+v", r)
	}
	if own, err := s.Audit(within(t), auditor.Query{}); err != nil || len(own.Records) != 2 {
		t.Errorf("the tenant sees %d records (%v), want its two", len(own.Records), err)
	}
}

// TestRefusalsDoNotFillTheDisk: most of very many refusals are only counted.
func TestRefusalsDoNotFillTheDisk(t *testing.T) {
	t.Parallel()
	h, _ := open(t, host.Config{Config: cataloged(t.TempDir(), board("a", "store")), Drivers: oneStore(t, false)})
	const many = 3000
	for range many {
		if err := h.Auditor().RefusedLogin("SignIn", "1.2.3.4:5", job.Unauthenticated); err != nil {
			t.Fatal(err)
		}
	}
	op := operator(t, h)
	eventually(t, "all refusals are counted", func() bool {
		if err := h.Auditor().RefusedLogin("Last", "1.2.3.4:5", job.Unauthenticated); err != nil {
			t.Fatal(err)
		}
		page, err := op.Audit(within(t), auditor.Query{All: true, Max: auditor.MaxPage})
		if err != nil {
			t.Fatal(err)
		}
		counted := int64(0)
		for _, r := range page.Records {
			if r.Call == "SignIn" || r.Repeated > 0 {
				counted += max(1, r.Repeated)
			}
		}
		if len(page.Records) > many/2 {
			t.Fatalf("%d records of %d refusals", len(page.Records), many)
		}
		return counted >= many
	})
}

// TestReplacedProgram: a driver's program that was replaced in its folder is
// started by a reload.
func TestReplacedProgram(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	install := func(at time.Time) {
		path := filepath.Join(folder, "memory")
		text := fmt.Sprintf("#!/bin/sh\n%s=driver exec %q\n", actAs, self)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	install(time.Unix(1000, 0))
	c := oneBackend("", board("default", "store"))
	c.PluginDir = folder
	h, err := host.Open(t.Context(), host.Config{Config: c, Logger: slog.New(slog.DiscardHandler), Load: func() (*config.Config, error) { next := c; return &next, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	session, err := login(t.Context(), h, secret)
	if err != nil {
		t.Fatal(err)
	}
	ready := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		b, err := session.Board(ctx, "default", "GetJobs")
		if err == nil {
			err = b.Ready(ctx)
		}
		return err
	}
	if err := ready(); err != nil {
		t.Fatal(err)
	}
	if changes, err := h.Reload(t.Context()); err != nil || len(changes) != 0 {
		t.Errorf("nothing was changed: %v, %v", changes, err)
	}
	install(time.Unix(2000, 0))
	if changes, err := h.Reload(t.Context()); err != nil || len(changes) != 1 {
		t.Errorf("the program was replaced: %v, %v", changes, err)
	}
	if err := ready(); err != nil {
		t.Errorf("with the new program: %v", err)
	}
}

// TestCloseWhileTheCatalogChanges closes a host while another one makes boards.
func TestCloseWhileTheCatalogChanges(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	first, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers})
	op := operator(t, first)
	ctx := within(t)
	for i := range 20 {
		second, err := host.Open(ctx, host.Config{Config: cataloged(""), Drivers: drivers, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		made := make(chan error, 1)
		go func() {
			b := config.NewBoard(fmt.Sprint("b", i))
			b.Backend = "store"
			_, err := op.CreateBoard(ctx, "", b)
			made <- err
		}()
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		if err := <-made; err != nil {
			t.Error(err)
		}
	}
}

// TestChangeAfterTheCaller has a change refused whose caller has gone.
func TestChangeAfterTheCaller(t *testing.T) {
	t.Parallel()
	h, _ := open(t, host.Config{Config: cataloged(""), Drivers: oneStore(t, false)})
	op := operator(t, h)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 50 { // which of the two is seen first is chance
		if _, _, err := op.CreateToken(gone, admin.NewToken{Name: fmt.Sprint("t", i), Roles: []string{"viewer"}}); err == nil {
			t.Fatal("a token was made for a caller who has gone")
		}
	}
}

// TestTokensAtTheirEdges makes as many tokens as a tenant may have, bound to as
// many boards as a token may be.
func TestTokensAtTheirEdges(t *testing.T) {
	t.Parallel()
	h, _ := open(t, host.Config{Config: cataloged(""), Drivers: oneStore(t, false)})
	op, ctx := operator(t, h), t.Context()
	boards := make([]string, admin.MaxTokenBoards+1)
	for i := range boards {
		boards[i] = fmt.Sprint("b", i)
	}
	n := admin.NewToken{Name: "t", Roles: []string{"viewer"}, Boards: boards}
	if _, _, err := op.CreateToken(ctx, n); !errors.Is(err, job.Invalid) {
		t.Errorf("bound to %d boards: %v", len(n.Boards), err)
	}
	n.Boards = boards[1:]
	if _, _, err := op.CreateToken(ctx, n); err != nil {
		t.Errorf("bound to %d boards: %v", len(n.Boards), err)
	}
	n.Boards = nil
	for i := 1; i < admin.MaxTokens; i++ {
		n.Name = fmt.Sprint("t", i)
		if _, _, err := op.CreateToken(ctx, n); err != nil {
			t.Fatalf("token %d: %v", i+1, err)
		}
	}
	n.Name = "more"
	if _, _, err := op.CreateToken(ctx, n); !errors.Is(err, job.QuotaExceeded) {
		t.Errorf("one more than %d: %v", admin.MaxTokens, err)
	}
	list, err := op.Tokens("", "")
	if err != nil {
		t.Fatal(err)
	}
	listed := 0
	for range list {
		listed++
	}
	if listed != admin.MaxTokens+2 { // with those of the configuration
		t.Errorf("%d tokens are listed", listed)
	}
}

func TestParseLimits(t *testing.T) {
	t.Parallel()
	l, err := admin.ParseLimits(map[string]int64{"boards": 3, "detail_bytes": 1 << 30})
	if err != nil || l.Boards != 3 || l.DetailBytes != 1<<30 {
		t.Errorf("got %+v, %v", l, err)
	}
	for _, wrong := range []map[string]int64{{"boards": 0}, {"bords": 1}, {"": 1}} {
		if _, err := admin.ParseLimits(wrong); !errors.Is(err, job.Invalid) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}
