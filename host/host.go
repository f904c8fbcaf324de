// Package host is the whole board server without a network: it starts the
// drivers, opens the boards, knows who may do what, and hands out boards to
// those who may use them.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
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

	Logger *slog.Logger // nil: slog.Default()
}

// How long Open waits for drivers to start the first time. Those that need
// longer go on starting.
const patience = 10 * time.Second

// Host serves the boards of one configuration. All its methods may be called
// from many goroutines at once.
type Host struct {
	config   Config
	logger   *slog.Logger
	tokens   *tenant.Registry
	backends map[string]*backend           // those that a board needs
	boards   map[string]map[string]*served // by tenant and name
	line     *line
	ready    readiness
	draining atomic.Bool

	stop    context.CancelFunc
	boardWG sync.WaitGroup
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
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &Host{
		config: c, logger: c.Logger, tokens: tokens, stop: stop, line: newLine(),
		backends: map[string]*backend{}, boards: map[string]map[string]*served{},
	}
	memories := &memories{folder: c.Config.DataDir}
	for _, b := range c.Config.Boards {
		if err := h.add(b, memories); err != nil {
			stop()
			return nil, err
		}
	}
	h.start(ctx, running)
	return h, nil
}

// add puts a board and, if it is the first on it, its backend into the tables.
func (h *Host) add(b config.Board, memories *memories) error {
	if h.backends[b.Backend] == nil {
		i := slices.IndexFunc(h.config.Config.Backends, func(c config.Backend) bool { return c.Name == b.Backend })
		if i < 0 {
			return job.Errorf(job.Invalid, "board %q: there is no backend %q", b.Name, b.Backend)
		}
		h.backends[b.Backend] = newBackend(h.config.Config.Backends[i], memories, h.logger)
	}
	if b.Tenant == "" {
		b.Tenant = tenant.Default
	}
	if h.boards[b.Tenant] == nil {
		h.boards[b.Tenant] = map[string]*served{}
	}
	if h.boards[b.Tenant][b.Name] != nil {
		return job.Errorf(job.Invalid, "tenant %q has two boards named %q", b.Tenant, b.Name)
	}
	h.boards[b.Tenant][b.Name] = newServed(b, h.backends[b.Backend], h.logger)
	return nil
}

// start starts everything, and waits for the drivers until ctx ends.
func (h *Host) start(ctx, running context.Context) {
	for _, b := range h.backends {
		b.wg.Go(func() { b.run(running, h) })
	}
	for _, boards := range h.boards {
		for _, s := range boards {
			h.boardWG.Go(func() { s.run(running, h) })
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, b := range h.backends {
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
	h.stop()
	h.boardWG.Wait()
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(h.backends)) {
		b := h.backends[name]
		b.wg.Wait()
		if err := b.close(); err != nil {
			failures = append(failures, fmt.Errorf("backend %s: %w", name, err))
		}
	}
	return errors.Join(failures...)
}

// Drain makes Ready say no from now on, so that nobody sends new callers. What
// runs goes on.
func (h *Host) Drain() { h.draining.Store(true) }

// Version returns the program's version, as in Config.
func (h *Host) Version() string { return h.config.Version }

// Settings returns the configuration that the host was opened with.
func (h *Host) Settings() *config.Config { return &h.config.Config }

// Ready returns nil when every backend that a board needs answers. The error
// says which does not and is not for strangers.
func (h *Host) Ready(ctx context.Context) error {
	if h.draining.Load() {
		return job.Errorf(job.Unavailable, "the server is shutting down")
	}
	return h.ready.ask(ctx, h.backends)
}
