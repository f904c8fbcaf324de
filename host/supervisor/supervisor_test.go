package supervisor

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

func board(name string) driver.BoardSpec {
	return driver.BoardSpec{Name: name, Window: time.Hour, MaxTombstones: driver.DefaultMaxTombstones, MaxFinals: 1000, MaxFinalBytes: 1 << 20}
}

func random() (b [16]byte) {
	_, _ = rand.Read(b[:])
	return b
}

func post(id job.ID) driver.Op {
	return driver.Op{
		Kind: driver.Post, Job: id, Request: random(), Event: job.Posted,
		Posting: &driver.Posting{ID: id, Name: "work", Details: []byte("{}"), Digest: random()},
	}
}

// cycle takes one job through its life and says what was wrong.
func cycle(ctx context.Context, d driver.Driver, board string) error {
	id := job.ID(random())
	if r := d.Apply(ctx, board, []driver.Op{post(id)})[0]; r.Kind != job.NoKind {
		return fmt.Errorf("post: %w", r.Err(&driver.Op{Job: id}))
	}
	claim := driver.Op{Kind: driver.Claim, Request: random(), Event: job.ClaimedEvent, Claim: &driver.ClaimSpec{
		Count: 1, Owner: "w", Lease: time.Minute, Candidates: []driver.Candidate{{Job: id, Nonce: random()}},
	}}
	r := d.Apply(ctx, board, []driver.Op{claim})[0]
	if r.Kind != job.NoKind || len(r.Claims) != 1 {
		return fmt.Errorf("claim: %v %s: %d claims, gone %v", r.Kind, r.Message, len(r.Claims), r.Skipped)
	}
	consume := driver.Op{Kind: driver.Remove, Job: id, Request: random(), Precondition: driver.HeldByToken, Token: r.Claims[0].Token, Event: job.ConsumedEvent}
	for range 2 { // the second is a client's retry
		if r := d.Apply(ctx, board, []driver.Op{consume})[0]; r.Kind != job.NoKind {
			return fmt.Errorf("consume: %w", r.Err(&consume))
		}
	}
	return nil
}

// A history keeps a log until it is wanted.
type history struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *history) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *history) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// TestKilledUnderLoad kills the driver over and over while callers work. None of
// them may notice more than a delay, and nothing may be lost or left over.
func TestKilledUnderLoad(t *testing.T) {
	t.Parallel()
	kills := 20
	if testing.Short() {
		kills = 4
	}
	spec := durable(t)
	spec.Period = time.Millisecond // forget crashes at once: there is no back-off
	spec.Wait = time.Minute        // the machine may be busy
	log := &history{}
	spec.Logger = slog.New(slog.NewTextHandler(log, nil))
	defer func() {
		if t.Failed() {
			t.Log(log.String())
		}
	}()
	s := running(t, spec)
	if _, err := s.OpenBoard(t.Context(), board("b")); err != nil {
		t.Fatal(err)
	}
	kept := job.ID(random())
	if r := s.Apply(t.Context(), "b", []driver.Op{post(kept)})[0]; r.Kind != job.NoKind {
		t.Fatal(r.Kind, r.Message)
	}
	var stop atomic.Bool
	var cycles atomic.Int64
	var callers sync.WaitGroup
	for range 32 {
		callers.Go(func() {
			for !stop.Load() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := cycle(ctx, s, "b"); err != nil {
					t.Error(err)
				}
				cancel()
				cycles.Add(1)
			}
		})
	}
	for n := range kills {
		before := cycles.Load()
		pid := s.State().PID
		waitFor(t, "work", func() bool { return cycles.Load() >= before+40 })
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "the next process", func() bool { state := s.State(); return state.Running && state.Restarts == n+1 })
	}
	stop.Store(true)
	callers.Wait()
	counts, err := s.Count(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	got := []int64{counts.Open, counts.Claimed, counts.Trashed, counts.Tombstones}
	if diff := cmp.Diff([]int64{1, 0, 0, cycles.Load()}, got); diff != "" {
		t.Errorf("open, claimed, trashed, ended (-want +got):\n%s", diff)
	}
	if got := s.State().Restarts; got != kills {
		t.Errorf("%d restarts after %d kills", got, kills)
	}
}

func TestHungDriverIsReplaced(t *testing.T) {
	t.Parallel()
	spec := durable(t)
	spec.Probe, spec.Misses = 100*time.Millisecond, 3
	s := running(t, spec)
	if _, err := s.OpenBoard(t.Context(), board("b")); err != nil {
		t.Fatal(err)
	}
	pid := s.State().PID
	testserver.Freeze(t, pid)
	if err := cycle(t.Context(), s, "b"); err != nil {
		t.Error(err)
	}
	state := s.State()
	if alive(pid) || state.PID == pid || state.LastError == nil || !strings.Contains(state.LastError.Error(), "hangs") {
		t.Errorf("the hung process is alive: %v; the state is %+v", alive(pid), state)
	}
}

func TestStreamsEndWithTheProcess(t *testing.T) {
	t.Parallel()
	s := running(t, durable(t))
	if _, err := s.OpenBoard(t.Context(), board("b")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	begun := make(chan struct{}, 100)
	go func() {
		for _, err := range s.Watch(t.Context(), "b", 0) {
			begun <- struct{}{}
			if err != nil {
				ended <- err
			}
		}
	}()
	if err := cycle(t.Context(), s, "b"); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := syscall.Kill(s.State().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; job.KindOf(err) != job.Unavailable {
		t.Errorf("the watch ended with %v, want %v", err, job.Unavailable)
	}
	if err := cycle(t.Context(), s, "b"); err != nil {
		t.Errorf("after the restart: %v", err)
	}
}

// TestConformance says that a supervised driver is one like any other, also after
// restarts.
func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{
		Only: []string{"post", "claim", "retry", "remove", "watch", "scan", "documents", "restart"},
		Open: func(t drivertest.T) driver.Driver { return supervised(t, t.TempDir()) },
		Store: func(t drivertest.T) func() driver.Driver {
			dir := t.TempDir()
			return func() driver.Driver { return supervised(t, dir) }
		},
	})
}

func supervised(t drivertest.T, dir string) driver.Driver {
	self, err := os.Executable()
	if err != nil {
		t.Fatalf("%v", err)
	}
	s := New(Spec{Name: "main", DataDir: dir, Command: plugin.Command{Path: self, Env: []string{actVariable + "=embedded"}}})
	go func() {
		if err := s.Run(context.Background()); err != nil {
			t.Errorf("%v", err)
		}
	}()
	if err := s.Ready(t.Context()); err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

// TestLiarIsReplaced has a driver whose answers can not be right.
func TestLiarIsReplaced(t *testing.T) {
	t.Parallel()
	s := running(t, Spec{Name: "main", Command: act(t, "liar"), MaxCrashes: 1000, Period: time.Millisecond})
	if _, err := s.OpenBoard(t.Context(), board("b")); err != nil {
		t.Fatal(err)
	}
	first := s.State().PID
	op := driver.Op{Kind: driver.Update, Job: job.ID{1}} // without a request it is not repeated
	if r := s.Apply(t.Context(), "b", []driver.Op{op})[0]; r.Kind != job.OutcomeUnknown {
		t.Errorf("Apply is %v, want %v", r.Kind, job.OutcomeUnknown)
	}
	waitFor(t, "another process", func() bool { state := s.State(); return state.Running && state.PID != first })
	if err := s.State().LastError; err == nil || !strings.Contains(err.Error(), "broke the contract") {
		t.Errorf("the last error is %v, want what the driver did", err)
	}
	if alive(first) {
		t.Error("the liar is alive")
	}
	// The boards are open again, without anybody having asked.
	if _, err := s.Count(t.Context(), "b"); err != nil {
		t.Errorf("Count after the restart: %v", err)
	}
}

func TestWrongSettings(t *testing.T) {
	t.Parallel()
	s := New(Spec{Name: "main", Command: act(t, "picky")})
	var run sync.WaitGroup
	run.Go(func() { _ = s.Run(context.Background()) })
	if err := s.Ready(t.Context()); job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), "address is missing") {
		t.Errorf("Ready is %v, want %v with the reason", err, job.Invalid)
	}
	_ = s.Close()
	run.Wait()
	if err := s.Run(t.Context()); err == nil {
		t.Error("a second Run gives no error")
	}
}

func TestRepeatable(t *testing.T) {
	t.Parallel()
	token := job.Token{Epoch: 1}
	claim := func(nonces ...[16]byte) driver.Op {
		op := driver.Op{Kind: driver.Claim, Request: random(), Claim: &driver.ClaimSpec{}}
		for _, n := range nonces {
			op.Claim.Candidates = append(op.Claim.Candidates, driver.Candidate{Nonce: n})
		}
		return op
	}
	for name, test := range map[string]struct {
		op   driver.Op
		want bool
	}{
		"post":                            {post(job.ID{1}), true},
		"post without a request":          {driver.Op{Kind: driver.Post}, false},
		"claim":                           {claim(random(), random()), true},
		"claim without a nonce":           {claim(random(), [16]byte{}), false},
		"consume":                         {driver.Op{Kind: driver.Remove, Precondition: driver.HeldByToken, Token: token}, true},
		"update by token":                 {driver.Op{Kind: driver.Update, Precondition: driver.HeldByToken, Token: token}, true},
		"update by token and version":     {driver.Op{Kind: driver.Update, Precondition: driver.HeldByToken, Token: token, Version: 3}, false},
		"update with version and request": {driver.Op{Kind: driver.Update, Version: 3, Request: random()}, true},
	} {
		if got := repeatable(&test.op); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestProgramThatNeverRuns(t *testing.T) {
	t.Parallel()
	var states atomic.Int64
	s := New(Spec{
		Name: "main", Command: act(t, "exit"), MaxCrashes: 2, Pause: time.Hour,
		Changed: func(State) { states.Add(1) },
	})
	var run sync.WaitGroup
	run.Go(func() { _ = s.Run(context.Background()) })
	waitFor(t, "the end of the tries", func() bool { return s.State().GivenUp })
	r := s.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Update}})[0]
	if r.Kind != job.Unavailable || !strings.Contains(r.Message, "no such library") {
		t.Errorf("Apply is %v %q, want %v with what the program printed", r.Kind, r.Message, job.Unavailable)
	}
	if err := s.Health(t.Context()); job.KindOf(err) != job.Unavailable {
		t.Errorf("Health is %v, want %v", err, job.Unavailable)
	}
	if got := states.Load(); got != 3 {
		t.Errorf("there were %d changes of the state, want 3 crashes", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	run.Wait()
}

func TestApplyWaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	s := New(Spec{Name: "main", Command: act(t, "exit"), Wait: time.Hour, MaxCrashes: 1000})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan driver.Result)
	go func() { done <- s.Apply(ctx, "b", []driver.Op{{Kind: driver.Update}})[0] }()
	cancel()
	if r := <-done; r.Kind != job.Interrupted {
		t.Errorf("Apply is %v, want %v", r.Kind, job.Interrupted)
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	unknown, away := driver.Result{Kind: job.OutcomeUnknown}, driver.Result{Kind: job.Unavailable}
	safe, unsafe := driver.Op{Kind: driver.Purge, Request: random()}, driver.Op{Kind: driver.Purge}
	for name, test := range map[string]struct {
		op             driver.Op
		before, answer driver.Result
		again, next    bool
		want           job.Kind
	}{
		"done":                         {safe, driver.Result{}, driver.Result{}, true, false, job.NoKind},
		"refused":                      {safe, driver.Result{}, driver.Result{Kind: job.NotFound}, true, false, job.NotFound},
		"refused after unknown":        {safe, unknown, driver.Result{Kind: job.NotFound}, true, false, job.NotFound},
		"not sent":                     {unsafe, driver.Result{}, away, true, true, job.Unavailable},
		"not sent, no time":            {unsafe, driver.Result{}, away, false, false, job.Unavailable},
		"unknown":                      {safe, driver.Result{}, unknown, true, true, job.OutcomeUnknown},
		"unknown and not to be tried":  {unsafe, driver.Result{}, unknown, true, false, job.OutcomeUnknown},
		"unknown, then not sent again": {safe, unknown, away, true, true, job.OutcomeUnknown},
	} {
		results := []driver.Result{test.before}
		next := keep(results, []int{0}, []driver.Op{test.op}, []driver.Result{test.answer}, test.again)
		if results[0].Kind != test.want || (len(next) == 1) != test.next {
			t.Errorf("%s: %v, again %v; want %v, again %v", name, results[0].Kind, next, test.want, test.next)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"redis": 0o755, "readme.md": 0o644, ".hidden": 0o755, "open": 0o757, "Shouting": 0o755} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	got, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Found{
		{Name: ".hidden", Skipped: "its name begins with a dot"},
		{Name: "Shouting", Skipped: "no backend could name it: want a to z, 0 to 9, dot, underscore and dash, at most 63 of them"},
		{Name: "open", Warning: "everybody may write to it: chmod o-w it"},
		{Name: "readme.md", Skipped: "it is not executable"},
		{Name: "redis"},
		{Name: "sub", Skipped: "it is a folder"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Found{}, "Path")); diff != "" {
		t.Errorf("Find (-want +got):\n%s", diff)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	got, err = Find(dir)
	if err != nil || !strings.Contains(got[4].Warning, "folder") || got[0].Warning != "" {
		t.Errorf("an open folder gives %v and %+v", err, got)
	}
	if _, err := Find(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that does not exist gives no error")
	}
}

// What is wrong names neither the backend nor the trouble twice.
func TestHealthNamesNobody(t *testing.T) {
	t.Parallel()
	s := New(Spec{Name: "main", Command: act(t, "picky"), Pause: time.Hour, MaxCrashes: 1})
	var run sync.WaitGroup
	run.Go(func() { _ = s.Run(context.Background()) })
	t.Cleanup(func() {
		_ = s.Close()
		run.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Ready(ctx); err == nil || strings.Contains(err.Error(), "backend") {
		t.Errorf("Ready: %v, want a reason without a backend", err)
	}
	err := s.Health(t.Context())
	if err == nil || strings.Contains(err.Error(), "backend") || strings.Count(err.Error(), "is not running") != 1 {
		t.Errorf("Health: %v, want a reason without a backend", err)
	}
	_, err = s.Count(t.Context(), "b")
	if err == nil || strings.Count(err.Error(), "backend main: ") != 1 {
		t.Errorf("Count: %v, want the backend once", err)
	}
}

// TestForgotten: a board that is gone is not opened again by the next process, as others are,
// whose witnesses are passed on before anybody can call them.
func TestForgotten(t *testing.T) {
	t.Parallel()
	spec := durable(t)
	var opened sync.Map
	spec.Opened = func(spec *driver.BoardSpec, status *driver.BoardStatus) {
		opened.Store(spec.Name, len(status.Witness) > 0)
	}
	s := running(t, spec)
	for _, name := range []string{"kept", "gone"} {
		if _, err := s.OpenBoard(t.Context(), board(name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Forget("gone")
	first := s.State().PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "another process", func() bool { state := s.State(); return state.Running && state.PID != first })
	if _, err := s.Count(t.Context(), "kept"); err != nil {
		t.Errorf("a board that was open is not: %v", err)
	}
	if _, err := s.Count(t.Context(), "gone"); job.KindOf(err) != job.Precondition {
		t.Errorf("a board that is gone was opened again: %v", err)
	}
	if witness, told := opened.Load("kept"); witness != true {
		t.Errorf("the next process opened a board: told %v, with a witness %v", told, witness)
	}
	if _, told := opened.Load("gone"); told {
		t.Error("of a board that is gone something was told")
	}
}
