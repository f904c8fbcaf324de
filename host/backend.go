package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/memory"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// The first and the longest pause between two tries to start a driver.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 30 * time.Second
)

// backend is one store and the driver that reaches it.
type backend struct {
	config  config.Backend
	known   *acknowledged.Backend
	logger  *slog.Logger
	latency *board.Histogram

	tried   chan struct{} // closed after the first try to start the driver
	started chan struct{} // closed when running is set
	wg      sync.WaitGroup

	processes sync.WaitGroup // of supervisors, which end with close
	program   atomic.Pointer[program]
	ending    context.Context //nolint:containedctx // ended by close, not by a caller
	end       context.CancelFunc
	line      sync.Mutex // guards presence, places and resting
	presence  *catalog.Presence
	places    *catalog.Places
	resting   *restDocs
	occupying *openLimiter // of its boards that occupy their places
	opened    atomic.Int64 // when a board of it last opened, as nanoseconds since the host's start

	running atomic.Pointer[running]
	problem atomic.Pointer[string]       // why it does not run
	gaveUp  atomic.Bool                  // it does not try to any more: what is wrong is not so by chance
	full    atomic.Bool                  // the store was full when last asked for its health
	usage   atomic.Pointer[driver.Usage] // what it said then that it holds; nil: it did not answer, or does not say
	ailment ailment                      // what its last answers said
}

// running is a driver that was started.
type running struct {
	driver   driver.Driver
	raw      driver.Driver   // with nothing around it
	backuper driver.Backuper // nil: the driver makes no backups
	mover    driver.Mover    // nil: its boards do not move
	measurer driver.Measurer // nil: the store does not say how much it holds
	waker    driver.Waker    // nil: the driver does not tell for which boards others leave postings
	info     driver.Info
	restarts func() int64       // of its process so far
	forget   func(board string) // that board is not opened again after a restart; nil: there is none
}

func newBackend(c config.Backend, m *memory.Memory, logger *slog.Logger) *backend {
	b := &backend{
		config: c, logger: logger.With("backend", c.Name), latency: newLatency(),
		tried: make(chan struct{}), started: make(chan struct{}), occupying: newOpenLimiter(occupyingAtOnce),
	}
	b.known = acknowledged.Of(c.Name, m, b.logger)
	b.ending, b.end = context.WithCancel(context.Background())
	return b
}

// run starts the driver, again and again until that succeeds or cannot, or the backend is closed.
func (b *backend) run(ctx context.Context, h *Host) {
	tried := sync.OnceFunc(func() { close(b.tried) })
	defer tried()
	ctx, giveUp := context.WithCancel(ctx)
	goOn := context.AfterFunc(b.ending, giveUp)
	defer goOn() // a driver that runs is closed, and not cut off
	start, err := h.starter(b)
	for pause := firstPause; err == nil; pause = min(2*pause, maxPause) {
		var r *running
		if r, err = start(ctx); err == nil {
			if err = b.check(h, r.info); err != nil {
				_ = r.driver.Close()
				break // the settings do not become better by themselves
			}
			r.raw = r.driver
			r.backuper, _ = r.driver.(driver.Backuper)
			r.mover, _ = r.driver.(driver.Mover)
			r.measurer, _ = r.driver.(driver.Measurer)
			if r.info.Wakes {
				r.waker, _ = r.driver.(driver.Waker)
			}
			r.driver = b.known.Through(h.tracer.Driver(r.driver, b.config.Name, b.config.Driver), b.latency.Observe)
			b.running.Store(r)
			b.problem.Store(nil)
			close(b.started)
			return
		}
		if job.KindOf(err) == job.Invalid {
			break
		}
		b.fail(ctx, err, "again_in", pause)
		tried()
		err = sleep.For(ctx, pause)
	}
	b.gaveUp.Store(true) // first: who reads why may ask for another try at once
	b.fail(ctx, err)
}

// check compares the backend's settings with the driver's schema.
func (b *backend) check(h *Host, info driver.Info) error {
	return h.Settings().SettingsError("backend", b.config.Name, info.Config.Check(b.config.Settings))
}

// fail logs and keeps why the driver does not start; more goes into the log.
func (b *backend) fail(ctx context.Context, err error, more ...any) {
	if ctx.Err() != nil {
		return
	}
	b.logger.With(more...).Error("the driver does not start", "driver", b.config.Driver, "error", err)
	text := err.Error()
	b.problem.Store(&text)
}

// close closes the driver, if it was started.
func (b *backend) close() error {
	b.end()
	b.wg.Wait()
	defer b.processes.Wait()
	if r := b.running.Load(); r != nil {
		return r.driver.Close()
	}
	return nil
}

// health asks the store and keeps what it says. QuotaExceeded says that it answers and
// is full.
func (b *backend) health(ctx context.Context) error {
	err := b.ask(ctx)
	b.ailment.answered(err)
	return err
}

func (b *backend) ask(ctx context.Context) error {
	r := b.running.Load()
	if r == nil {
		problem := "it has not started yet"
		if p := b.problem.Load(); p != nil {
			problem = *p
		}
		return job.Errorf(job.Unavailable, "backend %s: %s", b.config.Name, problem)
	}
	usage, err := r.measure(ctx)
	b.full.Store(isFull(err))
	if err != nil && !isFull(err) {
		usage = nil
	}
	b.usage.Store(usage)
	if err != nil {
		return fmt.Errorf("backend %s: %w", b.config.Name, err)
	}
	return nil
}

// measure asks the store how it is, and how much it holds where it says so.
func (r *running) measure(ctx context.Context) (*driver.Usage, error) {
	if r.measurer == nil {
		return nil, r.driver.Health(ctx)
	}
	u, err := r.measurer.Measure(ctx)
	return &u, err
}

// folder makes and returns the backend's own folder, or "" if the host has none.
func (b *backend) folder(dataDir string) (string, error) {
	if dataDir == "" {
		return "", nil
	}
	path := filepath.Join(dataDir, "backends", b.config.Name)
	return path, os.MkdirAll(path, 0o700)
}

// program is the file that a driver was started from.
type program struct {
	path    string
	written time.Time
}

// startedFrom notes the file of the driver's program.
func (b *backend) startedFrom(path string) {
	if info, err := os.Stat(path); err == nil {
		b.program.Store(&program{path, info.ModTime()})
	}
}

// outdated reports whether another program lies where the driver was started
// from.
func (b *backend) outdated() bool {
	p := b.program.Load()
	if p == nil {
		return false
	}
	info, err := os.Stat(p.path)
	return err == nil && !info.ModTime().Equal(p.written)
}

// runningBackend returns a backend as soon as it runs.
func (h *Host) runningBackend(ctx context.Context, name string) (*backend, *running, error) {
	b := h.backend(name)
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-b.tried:
	case <-ctx.Done():
	}
	r := b.running.Load()
	if r == nil {
		return nil, nil, job.Errorf(job.Unavailable, "the driver of the backend %s does not run; the server's log says why", name)
	}
	return b, r, nil
}

// BackendProblem says what is the matter with a backend that was started.
func (h *Host) BackendProblem(ctx context.Context, name string, started bool) error {
	if !started {
		return nil // no board needs it yet
	}
	ctx, cancel := context.WithTimeout(ctx, healthWithin)
	defer cancel()
	return h.backend(name).health(ctx)
}

// BackendUsage is how much the store of a backend that was started said last that it holds.
func (h *Host) BackendUsage(name string, started bool) (u driver.Usage) {
	if started {
		if last := h.backend(name).usage.Load(); last != nil {
			u = *last
		}
	}
	return u
}
