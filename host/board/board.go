package board

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/index"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Board is one board on one driver. All methods may be called from many
// goroutines at once; those that serve clients wait a moment for Run to have
// the board ready.
type Board struct {
	driver driver.Driver // as the host wraps it, see applyBatch
	spec   Spec
	log    *slog.Logger
	seed   [32]byte // begins the digests that must differ from board to board

	index      *index.Index
	ruling     sync.Mutex // held by SetRules
	rules      atomic.Pointer[ruleset]
	order      order
	flight     *inFlight
	requests   *inFlight // claim calls with a request id that are under way
	random     entropy
	readiness  *readiness
	hub        *hub
	pause      pause
	losses     losses
	settings   settingsWatch
	leaving    leaving
	tally      tally
	logs       logs
	waiting    dependents
	scheduler  scheduler
	batches    batchKeeper
	intake     chan struct{} // has room for one: postings may wait in the store
	metrics    Metrics
	contention contention
	waiters    atomic.Int64
	hands      hands
	tap        recorderTap
	names      nameBook
	samples    sampler
	inherited  bool // see Inherit
}

// New returns a board that Run makes ready. The driver must outlive it.
func New(d driver.Driver, spec Spec) *Board {
	if spec.Lease == 0 {
		spec.Lease = job.DefaultLease
	}
	if spec.MaxLease == 0 {
		spec.MaxLease = job.MaxLease
	}
	spec.Lease = min(spec.Lease, spec.MaxLease)
	if spec.Window == 0 {
		spec.Window = driver.DefaultWindow
	}
	if spec.HistoryEntries == 0 {
		spec.HistoryEntries = DefaultMaxHistoryEntries
	}
	if spec.HistoryBytes == 0 {
		spec.HistoryBytes = DefaultMaxHistoryBytes
	}
	if spec.Retry.MaxBackoff == 0 {
		spec.Retry.MaxBackoff = job.DefaultMaxBackoff
	}
	if spec.Key == "" {
		spec.Key = spec.Name
	}
	if spec.Logger == nil {
		spec.Logger = slog.Default().With("board", spec.Key)
	}
	b := &Board{
		driver: d, spec: spec, log: spec.Logger,
		seed:   sha256.Sum256([]byte("boardd board " + spec.Key)),
		index:  index.New(),
		flight: newInFlight(), requests: newInFlight(),
		readiness: newReadiness(),
		hub:       newHub(),
	}
	b.tap.recorder = spec.Recorder
	b.names.now = time.Now
	b.metrics.Waits, b.metrics.Runs = newJobTimes(), newJobTimes()
	b.order.board, b.order.wake = b, make(chan struct{}, 1)
	b.order.open, b.order.close = context.WithCancel(context.Background()) //nolint:fatcontext // it is the board's own, made once
	b.SetRules(spec.Rules)
	b.pause.changed = make(chan struct{})
	b.waiting.wake = make(chan struct{}, 1)
	b.intake = make(chan struct{}, 1)
	b.scheduler.all, b.scheduler.wake = map[string]*scheduled{}, make(chan struct{}, 1)
	b.batches.init()
	b.samples.init()
	b.samples.slept(&spec.Slept, time.Now())
	b.scheduler.missed = func(name string, from, to time.Time) {
		b.metrics.TicksMissed.Add(1)
		b.log.Warn("ticks of a schedule are left out: they are later than its catch-up", "schedule", name, "from", from, "to", to)
	}
	b.scheduler.declared.trouble, b.scheduler.declared.news = map[string]complaint{}, map[string]bool{}
	b.scheduler.disputed = func(name string) {
		b.log.Warn("a schedule is not as the configuration declares it any more: another server, which has other files, has changed it; theirs holds until this one starts again or reloads", "schedule", name)
	}
	return b
}

// Inherit has the board know the jobs that it had in the store that it left, so that it serves
// as soon as its new store is open and reads there meanwhile how they stand: its jobs came along,
// and what is offered of others, the store refuses. It comes before Run. Where the board was never
// open in the old store there is nothing to inherit.
func (b *Board) Inherit(before *Board) {
	if before.Status().Generation == 0 {
		return
	}
	before.index.CopyTo(b.index)
	b.inherited = true
}

// Spec returns what the board was made with, defaults filled in.
func (b *Board) Spec() Spec { return b.spec }

// Status says how the board stands, without asking the store.
func (b *Board) Status() Status {
	opened, ready, problem := b.readiness.look()
	paused, why := b.pause.look()
	return Status{
		Ready: ready, Problem: problem, Paused: paused, Why: why,
		Generation: opened.Generation, Durability: opened.Durability, Empties: opened.Capabilities.Empties,
		Window: opened.Window, Loss: b.losses.text(),
	}
}

// Ready blocks until the board can serve; when ctx ends first, it is
// Unavailable with the reason.
func (b *Board) Ready(ctx context.Context) error {
	_, err := b.readiness.wait(ctx, nil)
	return err
}

// Refused reports whether the board is not open because its driver refused to open
// it, and not because its store cannot be reached.
func (b *Board) Refused() bool {
	b.readiness.mu.Lock()
	defer b.readiness.mu.Unlock()
	switch job.KindOf(b.readiness.cause) {
	case job.Unavailable, job.Interrupted, job.OutcomeUnknown:
		return false
	}
	return b.readiness.cause != nil && b.readiness.opened.Load() == nil
}

// patience is how long a call waits for a board that is not ready: a driver
// that was restarted is back by then.
const patience = 2 * time.Second

// serving returns how the driver opened the board, or why it is not open.
func (b *Board) serving(ctx context.Context) (*driver.BoardStatus, error) {
	if opened := b.readiness.opened.Load(); opened != nil {
		return opened, nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	return b.readiness.wait(ctx, timer.C)
}

// changing is serving for calls that write.
func (b *Board) changing(ctx context.Context) (*driver.BoardStatus, error) {
	if b.spec.Observe {
		return nil, job.Errorf(job.Precondition, "the board %s is only observed: nothing can be changed through it", b.spec.Name)
	}
	return b.serving(ctx)
}

// readiness says whether the board can serve.
type readiness struct {
	opened atomic.Pointer[driver.BoardStatus] // nil while it cannot; written under mu

	mu      sync.Mutex
	last    driver.BoardStatus
	problem string
	cause   error         // of the last session's end; nil once it is open
	changed chan struct{} // closed when it opens
}

func newReadiness() *readiness {
	return &readiness{problem: "the board is being loaded", changed: make(chan struct{})}
}

func (g *readiness) look() (last driver.BoardStatus, ready bool, problem string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.last, g.opened.Load() != nil, g.problem
}

func (g *readiness) open(status driver.BoardStatus) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.problem, g.cause = status, "", nil
	if g.opened.Swap(&status) == nil {
		close(g.changed)
	}
}

func (g *readiness) shut(problem string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.problem = problem
	if g.opened.Swap(nil) != nil {
		g.changed = make(chan struct{})
	}
}

// broke notes why the last session ended.
func (g *readiness) broke(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cause = err
}

// wait blocks until the board can serve, ctx ends or late fires (nil: never).
func (g *readiness) wait(ctx context.Context, late <-chan time.Time) (*driver.BoardStatus, error) {
	for {
		g.mu.Lock()
		opened, changed := g.opened.Load(), g.changed
		g.mu.Unlock()
		if opened != nil {
			return opened, nil
		}
		var cause error
		select {
		case <-changed:
			continue
		case <-late:
		case <-ctx.Done():
			cause = context.Cause(ctx)
		}
		_, _, problem := g.look()
		return nil, &job.Error{Kind: job.Unavailable, Message: "the board cannot serve now: " + problem, Err: cause}
	}
}

// backoff counts waits that double, up to ten seconds. The first one is none.
type backoff struct{ wait time.Duration }

func (b *backoff) next() time.Duration {
	wait := b.wait
	b.wait = min(max(2*wait, 100*time.Millisecond), 10*time.Second)
	return wait
}
