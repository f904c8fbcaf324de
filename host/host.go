// Package host is the whole board server without a network: it starts the
// drivers, opens the boards, knows who may do what, and hands out boards to
// those who may use them.
//
// Locks, in the orders in which they are taken where several are held:
//
//	Host.reloading, Host.arranging, registry.mu, catalogHandle.mu
//	Host.arranging, recordings.mu
//	gauges.mu, registry.mu
//
// Host.arranging also comes before the locks of tenant.Access and identity.Issuers, and
// gauges.mu before those of the boards. backend.line, openLimiter.mu and ailment.mu are
// held alone. A board's beginning.mu comes before sleepers.mu.
//
// Some are held for long. Host.reloading is held while the configuration is read and its
// policies are compiled. gauges.mu is held while the stores of all boards are asked for
// their counts. recordings.mu is held until a recording that ends is on the disk, and
// while one is deleted; arrange and its callers, a change of the catalog among them,
// wait for that with Host.arranging held. The others are held while memory is read or
// written. No file, store or policy is asked with registry.mu or catalogHandle.mu held:
// every call takes these two.
package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/host/auditor"
	"github.com/boardd/boardd/host/binding"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/identity"
	"github.com/boardd/boardd/host/ledger"
	"github.com/boardd/boardd/host/memory"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/trace"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/durable"
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
	tracer   *trace.Tracer // nil: nothing is traced
	sleepers *sleepers
	memory   *memory.Memory // what the host must know of its stores even if they forgot it
	catalog  *catalogHandle // nil: the host keeps none
	registry *registry
	opening  *openLimiter
	lookups  chan struct{} // holds one for each look into the catalog's store
	ready    readiness
	draining atomic.Bool
	lowDisk  atomic.Bool     // some disk has little room left
	lowDisks map[string]bool // which; watchHealth's
	quotas   *quota.Quotas
	fleet    *fleetPart // nil: the host serves alone
	mover    *mover
	gauges   gauges

	policies   *binding.Engines
	recordings *recordings
	auditor    *auditor.Auditor
	reloading  sync.Mutex
	arranging  sync.Mutex // held while a change of who is let in and what is served is carried out

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
		config: c, id: id, logger: c.Logger, access: tenant.NewAccess(tokens), opening: newOpenLimiter(openingAtOnce), registry: newRegistry(),
		ready: newReadiness(), lowDisks: map[string]bool{}, lookups: make(chan struct{}, lookupsAtOnce), recordings: newRecordings(c.Config.DataDir, c.Logger),
	}
	h.sleepers = newSleepers()
	h.settings.Store(&c.Config)
	h.mover = newMover(h)
	h.quotas = &quota.Quotas{
		Limits: func(of string) config.Limits { return h.Directory().Limits(of) },
		Boards: h.registry.quotas, Board: h.registry.quota, Go: h.registry.leaving.Go,
	}
	if c.Config.Advertise != "" {
		h.quotas.Ledger = ledger.New(h.quotas, h.logger)
	}
	if err := errors.Join(h.checkBoards(), checkFleet(c.Config.Fleet)); err != nil {
		return nil, err
	}
	if err := identity.Check(c.Config.Issuers); err != nil {
		return nil, err
	}
	if h.tracer, err = trace.New(context.WithoutCancel(ctx), c.Config.Tracing, c.Version, id, c.Logger); err != nil {
		return nil, err
	}
	if h.memory, err = memory.Open(acknowledged.Folder(c.Config.DataDir), c.Logger); err != nil {
		h.tracer.Close()
		return nil, err
	}
	h.running, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.policies, err = binding.Open(h.running, binding.Options{
		DataDir: c.Config.DataDir, Child: c.PolicyChild, Logger: c.Logger, Tracer: h.tracer, Quotas: h.quotas,
		Settings: h.Settings, Catalog: func() *catalog.Catalog { return h.catalog.open() },
	})
	if err == nil {
		err = h.policies.Check(ctx, h.Settings())
	}
	if err == nil {
		h.auditor, err = auditor.Open(auditor.Options{
			Config: h.Settings(), Host: id, Logger: c.Logger, Catalog: func() *catalog.Catalog { return h.catalog.open() },
		})
	}
	if err != nil {
		h.stop()
		h.tracer.Close()
		return nil, errors.Join(err, h.policies.Close(), h.memory.Close())
	}
	h.issuers = identity.Open(identity.Options{Tenant: h.tenantID, Logger: c.Logger})
	h.openFleet()
	h.openCatalog()
	h.auditor.Begin(h.running)
	h.arrange(nil)
	h.registry.leaving.Go(h.sweepRecordings)
	h.registry.leaving.Go(func() { h.mover.run(h.running) })
	h.registry.leaving.Go(func() { h.watchHealth(h.running) })
	h.registry.leaving.Go(func() { h.restForever(h.running) })
	h.registry.leaving.Go(func() { h.sleepers.run(h.running) })
	h.patience(ctx)
	return h, nil
}

// checkBoards finds what is wrong with the boards of the configuration.
func (h *Host) checkBoards() error {
	seen := map[catalog.At]bool{}
	for _, b := range h.Settings().Boards {
		at := directory.At(b)
		if _, ok := h.Directory().Backend(b.Backend); !ok {
			return job.Errorf(job.Invalid, "board %q: there is no backend %q", b.Name, b.Backend)
		}
		if seen[at] {
			return job.Errorf(job.Invalid, "tenant %q has two boards named %q", at.Tenant, at.Name)
		}
		seen[at] = true
	}
	return nil
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
	h.fleet.wait()   // first of all, since it opens and closes boards
	h.catalog.wait() // first, since what it says may start boards
	h.issuers.Close()
	h.registry.stopBoards()
	h.recordings.close()
	return errors.Join(h.auditor.Close(), h.registry.closeBackends(), h.policies.Close(), h.memory.Close())
}

// Auditor returns what keeps the audit log.
func (h *Host) Auditor() *auditor.Auditor { return h.auditor }

// Logger returns what the host writes its log with.
func (h *Host) Logger() *slog.Logger { return h.logger }

// Quotas returns what keeps tenants and boards within their limits.
func (h *Host) Quotas() *quota.Quotas { return h.quotas }

// Policies returns what makes policies.
func (h *Host) Policies() *binding.Engines { return h.policies }

// Tracer returns what traces calls; nil: nothing does.
func (h *Host) Tracer() *trace.Tracer { return h.tracer }

// PolicyUse is what the modules use that tenants brought.
func (h *Host) PolicyUse() wasm.Usage { return h.policies.Use() }

// Drain makes Readiness say no from now on, so that nobody sends new callers. What
// runs goes on, and the boards become other servers' where there are others.
func (h *Host) Drain() {
	h.draining.Store(true)
	if m := h.Member(); m != nil {
		m.Say()
	}
}

// Version returns the program's version, as in Config.
func (h *Host) Version() string { return h.config.Version }

// Settings returns the present configuration. It is not changed.
func (h *Host) Settings() *config.Config { return h.settings.Load() }

// Full reports whether a store was full when it was last asked for its health: jobs
// there can be claimed and ended, and none can be posted.
func (h *Host) Full() bool {
	return slices.ContainsFunc(h.Backends(), func(b BackendStatus) bool { return b.Full })
}

// hostID returns what this host is called among those of a store: what lies in
// its data folder, or, without one, a new name each time.
func hostID(dataDir string) (string, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	made := hex.EncodeToString(b[:])
	if dataDir == "" {
		return made, nil
	}
	path := filepath.Join(dataDir, IDFile)
	data, err := os.ReadFile(path)
	switch id := strings.TrimSpace(string(data)); {
	case err == nil && isID(id):
		return id, nil
	case err == nil:
		return "", job.Errorf(job.Invalid, "%s: this is not the name of a host: want 16 hexadecimal digits; take the file away for a new one", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return made, durable.WriteFile(path, []byte(made+"\n"))
}

// IDFile is the file in the data folder that has the host's id.
const IDFile = "host-id"

func isID(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == 8
}
