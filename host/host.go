// Package host is the whole board server without a network: it starts the
// drivers, opens the boards, knows who may do what, and hands out boards to
// those who may use them.
package host

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/identity"
	"github.com/boardd/boardd/host/memory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/trace"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// Config says what a Host is to serve. The zero value serves nothing.
type Config struct {
	// Config is what the user wrote: backends, tenants, tokens, boards.
	Config config.Config

	// Builtin says how the drivers are started that this program brings along,
	// by their names in the configuration. They go before programs of the same
	// name in the plugin folder.
	Builtin map[string]plugin.Command

	// Drivers are served inside this process, without a child. They go before
	// Builtin.
	Drivers map[string]driver.Program

	// Version is the program's, for build information.
	Version string

	// PolicyChild is how processes are started that run the policies which tenants
	// bring; nil: those run in this process.
	PolicyChild wasm.Child

	Logger *slog.Logger // nil: slog.Default()

	// Load reads the configuration anew, for Reload; nil: it cannot be. Swap is
	// told of one that is about to hold, and may still refuse it; it may be nil.
	Load func() (*config.Config, error)
	Swap func(*config.Config) error
}

// How long Open waits for drivers to start the first time. Those that need
// longer go on starting.
const patience = 10 * time.Second

// Host serves the boards of one configuration and of one catalog. All its methods
// may be called from many goroutines at once.
type Host struct {
	config   Config
	id       string // of this host among those of one store, the same after a restart
	settings atomic.Pointer[config.Config]
	logger   *slog.Logger
	access   *tenant.Access
	issuers  *identity.Issuers
	tracer   *trace.Tracer  // nil: nothing is traced
	memory   *memory.Memory // what the host must know of its stores even if they forgot it
	catalog  *catalogHandle // nil: the host keeps none
	registry *registry
	opening  *openLimiter
	lookups  chan struct{} // holds one for each look into the catalog's store
	ready    readiness
	draining atomic.Bool
	lowDisk  atomic.Bool     // some disk has little room left
	lowDisks map[string]bool // which; watchHealth's
	meters   meters
	tallies  tallies
	gauges   gauges
	hosts    atomic.Int64 // that share the catalog; 0: not known

	engines    engines
	recordings *recordings
	simulating simulating
	audit      *auditor
	reloading  sync.Mutex
	arranging  sync.Mutex // of who is let in and what is served, after a change

	running context.Context //nolint:containedctx // of everything that the host started; Close ends it
	stop    context.CancelFunc
}

// Open starts the drivers and begins to open the boards. It returns when each
// driver has been started or has failed to, and does not wait for the boards: a
// call on one that is not open yet waits for it. What is wrong with one backend
// or board is logged and answered to its callers, and stops no other.
//
// The end of ctx ends only the waiting. Close must be called.
func Open(ctx context.Context, c Config) (*Host, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	tokens, err := tenant.NewRegistry(c.Config.Tokens)
	if err != nil {
		return nil, err
	}
	id, err := hostID(c.Config.DataDir)
	if err != nil {
		return nil, err
	}
	h := &Host{
		config: c, id: id, logger: c.Logger, access: tenant.NewAccess(tokens), opening: newOpenLimiter(), registry: newRegistry(),
		ready: newReadiness(), lowDisks: map[string]bool{}, lookups: make(chan struct{}, lookupsAtOnce), recordings: newRecordings(c.Config.DataDir, c.Logger),
	}
	h.settings.Store(&c.Config)
	if err := h.checkBoards(); err != nil {
		return nil, err
	}
	if err := identity.Check(c.Config.Issuers); err != nil {
		return nil, err
	}
	if h.tracer, err = trace.New(context.WithoutCancel(ctx), c.Config.Tracing, c.Version, id, c.Logger); err != nil {
		return nil, err
	}
	if h.memory, err = openMemory(c.Config.DataDir, c.Logger); err != nil {
		h.tracer.Close()
		return nil, err
	}
	h.running, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	err = h.openEngines(h.running)
	if err == nil {
		err = h.checkPolicies(ctx, h.Settings())
	}
	if err == nil {
		err = h.openAudit()
	}
	if err != nil {
		h.stop()
		h.tracer.Close()
		return nil, errors.Join(err, h.engines.close(), h.memory.Close())
	}
	h.issuers = identity.Open(identity.Options{Tenant: h.tenantID, Logger: c.Logger})
	h.openCatalog()
	h.audit.begin(h)
	h.arrange()
	h.registry.leaving.Go(h.sweepRecordings)
	h.registry.leaving.Go(func() { h.watchHealth(h.running) })
	h.patience(ctx)
	return h, nil
}

// checkBoards finds what is wrong with the boards of the configuration.
func (h *Host) checkBoards() error {
	seen := map[At]bool{}
	for _, b := range h.Settings().Boards {
		at := At{Tenant: tenantOf(b), Board: b.Name}
		if _, ok := h.backendConfig(b.Backend); !ok {
			return job.Errorf(job.Invalid, "board %q: there is no backend %q", b.Name, b.Backend)
		}
		if seen[at] {
			return job.Errorf(job.Invalid, "tenant %q has two boards named %q", at.Tenant, at.Board)
		}
		seen[at] = true
	}
	return nil
}

// At names a board.
type At struct{ Tenant, Board string }

func tenantOf(b config.Board) string {
	if b.Tenant == "" {
		return tenant.Default
	}
	return b.Tenant
}

// patience waits until each driver was started or has failed to, for a while.
func (h *Host) patience(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, b := range h.registry.allBackends() {
		select {
		case <-b.tried:
		case <-ctx.Done():
			return
		}
	}
}

// Close stops the boards and then the drivers, and waits for them. No other
// method may be called after it.
func (h *Host) Close() error {
	defer h.tracer.Close() // last, since what ends may be traced
	h.stop()
	h.catalog.wait() // first, since what it says may start boards
	h.issuers.Close()
	h.registry.stopBoards()
	h.recordings.close()
	return errors.Join(h.audit.close(h), h.registry.closeBackends(), h.engines.close(), h.memory.Close())
}

// Tracer returns what traces calls; nil: nothing does.
func (h *Host) Tracer() *trace.Tracer { return h.tracer }

// Drain makes Readiness say no from now on, so that nobody sends new callers. What
// runs goes on.
func (h *Host) Drain() { h.draining.Store(true) }

// Version returns the program's version, as in Config.
func (h *Host) Version() string { return h.config.Version }

// Settings returns the present configuration. It is not changed.
func (h *Host) Settings() *config.Config { return h.settings.Load() }

// Full reports whether a store was full when it was last asked for its health: jobs can be claimed and ended, and none can be posted there.
func (h *Host) Full() bool {
	return slices.ContainsFunc(h.Backends(), func(b BackendStatus) bool { return b.Full })
}
