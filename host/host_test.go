package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

const (
	actAs  = "BOARDD_TEST_ACT_AS"
	secret = "the-secret-of-the-test"
)

// TestMain lets the test's own program be a driver, and a process that runs
// policies.
func TestMain(m *testing.M) {
	if os.Getenv(actAs) == "driver" { // the program of a test
		plugin.Serve(memdriver.Program())
		return
	}
	if len(os.Args) > 1 && os.Args[1] == wasm.ChildArgument {
		os.Exit(wasm.ChildMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// log keeps what is logged.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *log) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func token() tenant.Token {
	return tenant.Token{Name: "root", Tenant: tenant.Default, Roles: []tenant.Role{tenant.TenantAdmin}, Digest: tenant.DigestOf(secret)}
}

func board(name, backend string) config.Board {
	return config.Board{
		Name: name, Tenant: tenant.Default, Backend: backend, Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
	}
}

// login returns the session of whoever has a secret.
func login(ctx context.Context, h *host.Host, secret string) (*admin.Session, error) {
	s, err := h.Login(ctx, secret)
	if err != nil {
		return nil, err
	}
	return admin.Of(h, s), nil
}

// open opens a host and logs in.
func open(t *testing.T, c host.Config) (*host.Host, *admin.Session) {
	t.Helper()
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	h, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	s, err := login(t.Context(), h, secret)
	if err != nil {
		t.Fatal(err)
	}
	return h, s
}

// use posts, claims and consumes a job.
func use(ctx context.Context, s *admin.Session, name string) error {
	b, err := s.Board(ctx, name, "PostJobs")
	if err != nil {
		return err
	}
	if err := b.Ready(ctx); err != nil {
		return err
	}
	posted, err := b.Post(ctx, []job.Posting{{Name: "a"}})
	if err != nil {
		return err
	}
	return posted[0].Err
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestOneBadBackendStopsNoOther(t *testing.T) {
	t.Parallel()
	var l log
	failing := memdriver.Program()
	failing.Open = func(context.Context, driver.Config) (driver.Driver, error) {
		return nil, job.Errorf(job.Unavailable, "nobody listens at 10.1.2.3")
	}
	backend := func(name, driverName string) config.Backend {
		return config.Backend{Name: name, Driver: driverName, Settings: []byte("{}")}
	}
	h, s := open(t, host.Config{
		Logger:  l.logger(),
		Drivers: map[string]driver.Program{"memory": memdriver.Program(), "failing": failing},
		Config: config.Config{
			Tokens:   []tenant.Token{token()},
			Backends: []config.Backend{backend("good", "memory"), backend("unknown", "memroy"), backend("down", "failing"), backend("unused", "nowhere")},
			Boards:   []config.Board{board("a", "good"), board("b", "unknown"), board("c", "down"), board("d", "good")},
		},
	})
	ctx := within(t)
	for _, name := range []string{"a", "d"} {
		if err := use(ctx, s, name); err != nil {
			t.Errorf("board %s: %v", name, err)
		}
	}
	for _, name := range []string{"b", "c"} {
		err := use(ctx, s, name)
		if !errors.Is(err, job.Unavailable) || strings.Contains(err.Error(), "10.1.2.3") {
			t.Errorf("board %s: %v", name, err)
		}
	}
	for _, served := range s.Boards() {
		if good := served.Config.Backend == "good"; good != served.Status.Ready || good != (served.Status.Problem == "") {
			t.Errorf("board %s: %+v", served.Config.Name, served.Status)
		}
	}
	if err := h.Readiness().Err; err == nil || !strings.Contains(err.Error(), "unknown") || !strings.Contains(err.Error(), "down") || strings.Contains(err.Error(), "good") {
		t.Errorf("Ready: %v", err)
	}
	for _, want := range []string{`there is no driver \"memroy\" (did you mean \"memory\"?)`, "nobody listens at 10.1.2.3", "again_in="} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, l.String())
		}
	}
}

func TestWrongSettingsNameTheirPlace(t *testing.T) {
	t.Parallel()
	var l log
	path := filepath.Join(t.TempDir(), "boardd.hcl")
	text := `token "root" {
  roles  = ["tenant-admin"]
  secret = "` + secret + `"
}
backend "one" {
  driver = "picky"
  config = { adress = "here" }
}
backend "two" {
  driver = "picky"
  config = { address = "here" }
}
board "a" {
  backend = "one"
}
board "b" {
  backend = "two"
  config  = { namespace = 7 }
}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Source{Paths: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	picky := memdriver.Program()
	picky.Info.Config = driver.Schema{Fields: []driver.Field{{Name: "address", Type: driver.String}}}
	picky.Info.Board = driver.Schema{Fields: []driver.Field{{Name: "namespace", Type: driver.String}}}
	_, s := open(t, host.Config{Config: *c, Logger: l.logger(), Drivers: map[string]driver.Program{"picky": picky}})
	ctx := within(t)
	for _, name := range []string{"a", "b"} {
		if err := use(ctx, s, name); !errors.Is(err, job.Unavailable) {
			t.Errorf("board %s: %v", name, err)
		}
	}
	for _, want := range []string{
		`boardd.hcl:7,23: backend one: config.adress: there is no such setting (did you mean \"address\"?)`,
		`boardd.hcl:18,27: board default/b: config.namespace: want a string`,
	} {
		if !strings.Contains(l.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, l.String())
		}
	}
}

// spy sees how boards are opened.
type spy struct {
	driver.Driver

	open func(driver.BoardSpec) driver.BoardStatus
}

func (s *spy) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	changed := s.open(spec)
	spec.Witness = nil // what the spy gave out would be strange to the driver
	status, err := s.Driver.OpenBoard(ctx, spec)
	if changed.Witness != nil {
		status.Witness = changed.Witness
	}
	return status, err
}

func spying(open func(driver.BoardSpec) driver.BoardStatus) map[string]driver.Program {
	return map[string]driver.Program{"memory": memdriver.Program().Wrapped(func(d driver.Driver) driver.Driver { return &spy{Driver: d, open: open} })}
}

func oneBackend(dataDir string, boards ...config.Board) config.Config {
	return config.Config{
		DataDir: dataDir, Tokens: []tenant.Token{token()}, Boards: boards,
		Backends: []config.Backend{{Name: "store", Driver: "memory", Settings: []byte("{}")}},
	}
}

func TestMemoryOutlivesTheHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	var seen []string
	drivers := spying(func(spec driver.BoardSpec) driver.BoardStatus {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, spec.Name+"="+string(spec.Witness))
		return driver.BoardStatus{Witness: fmt.Appendf(nil, "%s was opened %d times", spec.Name, len(seen))}
	})
	for range 2 {
		h, err := host.Open(t.Context(), host.Config{Config: oneBackend(dir, board("a", "store")), Drivers: drivers, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s, err := login(t.Context(), h, secret)
		if err != nil {
			t.Fatal(err)
		}
		if err := use(within(t), s, "a"); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"default/a=", "default/a=default/a was opened 1 times"}; !slices.Equal(seen, want) {
		t.Errorf("the driver was shown %q, want %q", seen, want)
	}
	if info, err := os.Stat(filepath.Join(dir, "backends", "store")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the backend's folder: %v, %v", info, err)
	}
}

// TestBoardsAreOpenedAFewAtATime counts those that are being opened.
func TestBoardsAreOpenedAFewAtATime(t *testing.T) {
	t.Parallel()
	const boards, atOnce = 40, 8
	var opening, most atomic.Int64
	full, once := make(chan struct{}), sync.Once{}
	drivers := spying(func(driver.BoardSpec) driver.BoardStatus {
		n := opening.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			continue
		}
		if n == atOnce {
			once.Do(func() { close(full) }) // until then nobody leaves
		}
		<-full
		defer opening.Add(-1)
		return driver.BoardStatus{}
	})
	all := make([]config.Board, boards)
	for i := range all {
		all[i] = board(fmt.Sprintf("b%02d", i), "store")
	}
	_, s := open(t, host.Config{Config: oneBackend("", all...), Drivers: drivers})
	for _, b := range all {
		if err := use(within(t), s, b.Name); err != nil {
			t.Errorf("board %s: %v", b.Name, err)
		}
	}
	if most.Load() != atOnce {
		t.Errorf("%d boards were opened at once, want %d", most.Load(), atOnce)
	}
}

func TestDriverInAProcessOfItsOwn(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := plugin.Command{Path: self, Env: []string{actAs + "=driver"}}
	h, s := open(t, host.Config{
		Config: oneBackend(t.TempDir(), board("a", "store")), Builtin: map[string]plugin.Command{"memory": command},
	})
	ctx := within(t)
	if err := use(ctx, s, "a"); err != nil {
		t.Fatal(err)
	}
	if err := h.Started(ctx); err != nil {
		t.Errorf("Started: %v", err)
	}
	all := h.Backends()
	count, sum, _ := all[0].Apply.Totals()
	if len(all) != 1 || !all[0].Running || all[0].Restarts != 0 || count == 0 || sum <= 0 {
		t.Errorf("backends: %+v, %d batches in %f s", all, count, sum)
	}
}

func TestPluginFolder(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	script := "#!/bin/sh\n" + actAs + "=driver exec '" + self + "'\n"
	if err := os.WriteFile(filepath.Join(folder, "memory"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	c := oneBackend("", board("a", "store"))
	c.PluginDir = folder
	_, s := open(t, host.Config{Config: c})
	if err := use(within(t), s, "a"); err != nil {
		t.Fatal(err)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	h, s := open(t, host.Config{Config: oneBackend("", board("a", "store")), Drivers: spying(func(driver.BoardSpec) driver.BoardStatus { return driver.BoardStatus{} })})
	ctx := within(t)
	if err := h.Started(ctx); err != nil {
		t.Errorf("before: %v", err)
	}
	h.Drain()
	if err := h.Readiness().Err; !errors.Is(err, job.Unavailable) {
		t.Errorf("after: %v", err)
	}
	if err := use(ctx, s, "a"); err != nil {
		t.Errorf("what runs does not go on: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	twice := oneBackend("", board("a", "store"), board("a", "store"))
	nowhere := oneBackend("", board("a", "nowhere"))
	tokens := oneBackend("")
	tokens.Tokens = append(tokens.Tokens, tokens.Tokens...)
	for name, c := range map[string]config.Config{"two boards of one name": twice, "a board without a backend": nowhere, "two tokens of one name": tokens} {
		h, err := host.Open(t.Context(), host.Config{Config: c})
		if !errors.Is(err, job.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if h != nil {
			t.Errorf("%s: there is a host", name)
		}
	}
}
