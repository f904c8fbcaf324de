package seeded

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/internal/faults/history"
	"github.com/boardd/boardd/internal/faults/teams"
	"github.com/boardd/boardd/internal/faults/workload"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

const (
	secret = "not-very-secret-1234567890"
	board  = "default"

	clockBoard = "clock"
	busyBoard  = "busy"

	otherTenant = "acme"
	otherBoard  = "others"
	otherSecret = "not-very-secret-either-1234567890"

	// patience is how long a board of a wrong server may take to come to rest.
	patience = 3 * time.Second

	// A schedule's load lasts as long as this many calls take, within these times.
	calls    = 600
	shortest = 2 * time.Second
	longest  = 20 * time.Second
	loadStep = 50 * time.Millisecond
)

// Run makes a short history on servers within this process, with a bug. The zero Bug is
// none: then there is by turns what the bugs of policies and of several hosts need.
func Run(t testing.TB, bug Bug, seed uint64) *history.History {
	t.Helper()
	recorder := history.NewRecorder("memory", seed)
	if bug.Limit > 0 {
		recorder.Change(func(h *history.History) { h.OpenJobs = map[string]int{board: bug.Limit} })
	}
	bug.complete(seed)
	bug.receive(t, recorder)
	programs := bug.programs(seed)
	addrs := []string{serve(t, &bug, programs)}
	if bug.hosts || bug.busy {
		addrs = append(addrs, serve(t, &bug, programs))
	}
	dial := func(addr, secret string, seed uint64, wrong, lossy bool) *client.Client {
		return bug.dial(t, addr, secret, seed, wrong, lossy)
	}
	var moves *workload.Moves
	if bug.moves != nil {
		moves = bug.movable(t, recorder, bug.servers(t, addrs, seed), seed)
	}
	load := workload.New(workload.Config{
		Server:   func(n int) string { return serverName(n % len(addrs)) },
		Recorder: recorder, Board: board, Seed: seed, Clients: 6, Pause: 8 * time.Millisecond, Lease: 1800 * time.Millisecond, Limited: bug.Limit > 0, Timeouts: true,
		Connect: func(n int) (*client.Client, bool) {
			return dial(addrs[n%len(addrs)], secret, seed+uint64(n), true, true), false
		},
	})
	watchers := load.Watch(t.Context())
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { // it ends with the load
		defer stop()
		enough(ctx, recorder)
	}()
	var others sync.WaitGroup
	bug.meddle(ctx, t, &others, load, addrs[0], seed)
	scheduler := dial(addrs[0], secret, seed, true, false).Board(clockBoard)
	clock, err := workload.StartClock(t.Context(), recorder, scheduler, scheduler)
	if err != nil {
		t.Fatal(err)
	}
	batches := workload.NewBatches(recorder, scheduler, seed)
	hooks, tell := bug.hooked(t, recorder, addrs[0], seed)
	for _, run := range []func(context.Context){clock.Run, batches.Run, tell} {
		others.Go(func() { run(ctx) })
	}
	relays := workload.NewRelays(recorder, busyBoard, bug.servers(t, addrs, seed), seed)
	if bug.busy {
		others.Go(func() { relays.Run(ctx) })
	}
	if moves != nil {
		others.Go(func() { moves.Run(ctx) })
	}
	load.Run(ctx)
	others.Wait()
	if moves != nil {
		if err := moves.Rest(t.Context(), patience); err != nil {
			t.Logf("%s, seed %d: %v", bug.Name, seed, err)
		}
	}
	readers := map[string]*client.Client{}
	for i, addr := range addrs {
		readers[serverName(i)] = dial(addr, secret, seed, bug.Where == Server, false)
	}
	still := readers[serverName(0)].Board(clockBoard)
	for _, err := range []error{
		relays.Rest(t.Context(), shortest/2), bug.told(t, hooks, readers[serverName(0)]),
		load.Rest(t.Context(), readers, watchers, patience), clock.Rest(t.Context(), still, patience), batches.Rest(t.Context(), still, patience),
	} {
		if err != nil { // a wrong server may never come to rest
			t.Logf("%s, seed %d: %v", bug.Name, seed, err)
		}
	}
	return recorder.History()
}

// meddle begins what other tenants and those who change policies do, where the bug is about them.
func (bug *Bug) meddle(ctx context.Context, t testing.TB, others *sync.WaitGroup, load *workload.Load, addr string, seed uint64) {
	t.Helper()
	if bug.tenants {
		stranger := bug.dial(t, addr, otherSecret, seed, true, false)
		others.Go(func() { load.Pry(ctx, stranger, otherBoard) })
	}
	if bug.policies {
		s := workload.Server{Name: serverName(0), Client: bug.dial(t, addr, secret, seed, true, false)}
		module := teams.Module(t)
		others.Go(func() { load.Deploy(ctx, module, []workload.Server{s}) })
		others.Go(func() { load.Probe(ctx, s) })
	}
}

// complete gives the zero Bug what bugs need to show themselves, by turns.
func (bug *Bug) complete(seed uint64) {
	if bug.Name == "" {
		bug.webhooks = true
		switch seed % 3 {
		case 0:
			bug.busy = true
		case 1:
			bug.policies = true
		case 2:
			bug.hosts, bug.moves = true, rightly
		}
	}
	if bug.busy && bug.open == nil {
		bug.open = sharing(func(d driver.Driver) driver.Driver { return d })
	}
}

// servers are connections to each server that lose nothing.
func (bug *Bug) servers(t testing.TB, addrs []string, seed uint64) (all []workload.Server) {
	t.Helper()
	for i, addr := range addrs {
		all = append(all, workload.Server{Name: serverName(i), Client: bug.dial(t, addr, secret, seed, true, false)})
	}
	return all
}

// dial returns a client whose calls go wrong as the bug says, or are as they should be.
func (bug *Bug) dial(t testing.TB, addr, secret string, seed uint64, wrong, lossy bool) *client.Client {
	t.Helper()
	w := &wire{next: &http.Client{Transport: &http.Transport{}}, lossy: lossy, random: rand.New(rand.NewPCG(seed, 7))} //nolint:gosec // a run that can be made again
	if wrong {
		w.hooks = bug.hooks
	}
	c, err := client.New(client.Config{Addr: addr, Token: secret, HTTPClient: w, RetryFor: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.next.(*http.Client).CloseIdleConnections)
	return c
}

// enough waits until clients have made so many calls that a bug can have shown itself. On a
// busy machine that takes longer.
func enough(ctx context.Context, recorder *history.Recorder) {
	for waited := time.Duration(0); waited < longest; waited += loadStep {
		if sleep.For(ctx, loadStep) != nil || waited >= shortest && recorder.Calls() >= calls {
			return
		}
	}
}

func serverName(n int) string { return fmt.Sprint("server ", n) }

// opened is the program of a driver whose store does not always answer.
func opened(open func(context.Context, driver.Config) (driver.Driver, error), seed uint64) driver.Program {
	program := memdriver.Program()
	if open != nil {
		program.Open = open
	}
	return program.Wrapped(func(d driver.Driver) driver.Driver {
		return &hiccup{Driver: d, random: rand.New(rand.NewPCG(seed, 9))} //nolint:gosec // a run that can be made again
	})
}

// hiccup is a driver whose store does not always say what became of an op.
type hiccup struct {
	driver.Driver
	mu     sync.Mutex
	random *rand.Rand
}

// Apply loses answers.
func (h *hiccup) Apply(ctx context.Context, board string, ops []driver.Op) []driver.Result {
	h.mu.Lock()
	roll := h.random.IntN(20)
	h.mu.Unlock()
	results := h.Driver.Apply(ctx, board, ops)
	if roll == 0 {
		for i := range results {
			results[i] = driver.Result{Kind: job.OutcomeUnknown, Message: "the answer was lost"}
		}
	}
	return results
}

// serve runs a server until the test is over, and returns its address.
func serve(t testing.TB, bug *Bug, programs map[string]driver.Program) string {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	settings := config.Config{
		Listen: "127.0.0.1:0", Tenants: []string{"default", otherTenant}, DataDir: t.TempDir(),
		Tokens: []tenant.Token{
			{Name: "root", Tenant: "default", Roles: []tenant.Role{tenant.TenantAdmin}, Digest: tenant.DigestOf(secret)},
			{Name: "root", Tenant: otherTenant, Roles: []tenant.Role{tenant.TenantAdmin}, Digest: tenant.DigestOf(otherSecret)},
		},
		Backends: []config.Backend{{Name: home, Driver: "memory", Settings: []byte("{}")}},
		Boards: []config.Board{{
			Name: board, Tenant: "default", Backend: "store", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
		}, {
			Name: clockBoard, Tenant: "default", Backend: "store", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
		}, {
			Name: busyBoard, Tenant: "default", Backend: "store", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
		}, {
			Name: otherBoard, Tenant: otherTenant, Backend: "store", Lease: 30 * time.Second, MaxLease: time.Hour, IdempotencyWindow: time.Hour,
		}},
	}
	if bug.policies {
		settings.Catalog = "store"
	}
	settings.Boards[0].Limits.OpenJobs = int64(bug.Limit)
	if bug.moves != nil { // the first board is made and moved through the API
		settings.Catalog, settings.Boards = home, settings.Boards[1:]
		settings.Backends[0].Tenants = []string{"*"}
		settings.Backends = append(settings.Backends, config.Backend{Name: away, Driver: away, Settings: []byte("{}"), Tenants: []string{"*"}})
		settings.Tokens[0].Roles = []tenant.Role{tenant.Operator}
	}
	bug.tell(t, &settings)
	h, err := host.Open(t.Context(), host.Config{Config: settings, Logger: quiet, Drivers: programs})
	if err != nil {
		t.Fatal(err)
	}
	s, err := api.NewServer(h, api.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr().String()
}
