package wasm

import (
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/boardd/boardd/host/wasm/meter"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
	"github.com/boardd/boardd/sdk/policy/block"
)

// Module is a module that was checked and compiled.
type Module struct {
	engine   *Engine
	digest   string
	declared *policy.Declared
	metered  meter.Metered
	exports  map[string]bool       // its functions
	pages    int                   // of 64 KiB, that its memory may have
	compiled wazero.CompiledModule // nil where processes run it
}

// Digest returns what the module is known by.
func (m *Module) Digest() string { return m.digest }

// Declared returns its manifest.
func (m *Module) Declared() *policy.Declared { return m.declared }

// Policy is a module with its parameters set: a policy.Ranker and
// policy.Explainer as far as its manifest says so. Several goroutines may use it.
// Its errors, where the module is to blame, are *Fault. To put another one in its
// place, hand out the new one first and close the old one then: calls that have
// begun come to their end, and those that come later get job.Unavailable and may
// be repeated on the new one.
type Policy struct {
	*block.Rule

	pool *pool
}

// Memory is what one process that runs the module is charged, in bytes: what its
// memory may grow to, the picture of it, and what the process itself takes.
func (m *Module) Memory() int64 { return processMemory + 2*int64(m.pages)<<16 }

// Load checks a module, makes it count and compiles it. The same bytes are
// compiled once, however often they are loaded. Close it when no more policies
// are to be made of it.
func (e *Engine) Load(ctx context.Context, b []byte) (*Module, error) { return e.LoadFor(ctx, b, nil) }

// LoadFor is Load for an account: of its modules one is compiled at a time, by a
// process that others go before, and the next wait. The end of ctx ends only the
// waiting.
func (e *Engine) LoadFor(ctx context.Context, b []byte, a *Account) (*Module, error) {
	digest := Digest(b)
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, job.Errorf(job.Unavailable, "the engine is closed")
	}
	l := e.loaded[digest]
	if l != nil {
		l.users++
		e.mu.Unlock()
		return e.await(ctx, digest, l)
	}
	l = &loading{ready: make(chan struct{}), users: 1}
	e.loaded[digest] = l
	b = slices.Clone(b)
	e.loads.Go(func() {
		l.module, l.err = e.load(e.running, digest, b, a)
		close(l.ready)
		e.retain(digest) // or nobody would drop it if all callers have gone
		e.release(digest)
	})
	e.mu.Unlock()
	return e.await(ctx, digest, l)
}

func (e *Engine) await(ctx context.Context, digest string, l *loading) (*Module, error) {
	select {
	case <-l.ready:
	case <-ctx.Done():
		e.release(digest)
		return nil, ctx.Err()
	}
	if l.err != nil {
		e.release(digest)
		return nil, l.err
	}
	return l.module, nil
}

// retain counts one use more of a module that is in use.
func (e *Engine) retain(digest string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.loaded[digest]; l != nil {
		l.users++
	}
}

// release gives up one use of a module; the last one closes it.
func (e *Engine) release(digest string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.loaded[digest]
	if l == nil {
		return
	}
	if l.users--; l.users > 0 {
		return
	}
	select {
	case <-l.ready:
		delete(e.loaded, digest)
		if l.module != nil && l.module.compiled != nil {
			_ = l.module.compiled.Close(context.Background())
		}
	default: // who loads it has not looked yet, and is counted
	}
}

func (e *Engine) load(ctx context.Context, digest string, b []byte, a *Account) (*Module, error) {
	if e.config.Child != nil {
		done, err := e.turn(ctx, a)
		if err != nil {
			return nil, err
		}
		defer done() // reading and rewriting take their time, too
	}
	read, declared, err := read(b, e.config.Limits)
	if err != nil {
		return nil, err
	}
	m := &Module{
		engine: e, digest: digest, declared: declared,
		metered: meter.Rewrite(read), exports: map[string]bool{}, pages: read.Memory.Max,
	}
	for _, x := range read.Exports {
		m.exports[x.Name] = x.Kind == module.ExportFunction
	}
	if e.config.Child != nil {
		return m, e.compileOnce(ctx, digest, m.metered.Bytes)
	}
	m.compiled, err = e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, e.config.Instances), m.metered.Bytes)
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Message: "the module does not compile", Err: err}
	}
	return m, nil
}

// Close gives the module up. Policies that were made of it go on.
func (m *Module) Close() error {
	m.engine.release(m.digest)
	return nil
}

// A Gauge is asked before each call of a policy, and told afterwards what the call
// used. Several goroutines use it.
type Gauge interface {
	// Wait waits until there is fuel. The policy is not called if it fails.
	Wait(ctx context.Context) error

	Spend(fuel int64)
}

// Bind sets the module's parameters, starts a first instance and lets it read
// them.
func (m *Module) Bind(ctx context.Context, set map[string]any) (*Policy, error) {
	return m.BindCharged(ctx, set, nil)
}

// BindCharged is Bind for a policy whose calls are charged to a gauge. Its start is
// not: an instance serves many calls.
func (m *Module) BindCharged(ctx context.Context, set map[string]any, gauge Gauge) (*Policy, error) {
	return m.BindFor(ctx, set, gauge, nil)
}

// BindFor is BindCharged with an account that the policy's processes are charged to.
// Where they are too many, what is not used is ended for those that are needed, and
// a call that gets none within Patience fails: job.QuotaExceeded.
func (m *Module) BindFor(ctx context.Context, set map[string]any, gauge Gauge, account *Account) (*Policy, error) {
	manifest, values, err := m.declared.Bind(set)
	if err != nil {
		return nil, err
	}
	form, err := block.Form(&manifest, values)
	if err != nil {
		return nil, err
	}
	p := &pool{engine: m.engine, module: m, name: manifest.Name, form: form, fuel: m.engine.config.Fuel, gauge: gauge, account: account, seats: make(chan struct{}, m.engine.config.Instances)}
	m.engine.retain(m.digest) // until the pool is closed, and its last instance
	m.engine.budget.enter(p)
	first, err := p.borrow(ctx)
	if err != nil {
		_ = p.Close()
		return nil, fmt.Errorf("policy %s: %w", manifest.Name, err)
	}
	first.Return(true)
	rule, err := block.New(manifest, values, p)
	if err != nil {
		_ = p.Close()
		return nil, err
	}
	return &Policy{Rule: rule, pool: p}, nil
}

// Retire says that another policy took this one's place: no instance waits for
// calls any more. Those that have begun come to their end, and the few that still
// come are answered, each at the cost of a start, until Close.
func (p *Policy) Retire() { p.pool.retire() }

// Used returns the fuel that the last call used that came to an end on any
// instance: for tools that run one call at a time.
func (p *Policy) Used() int64 { return p.pool.used.Load() }

// callsOf are the calls that instances prepare.
var callsOf = []abi.Call{abi.Eligible, abi.Score, abi.RankKeys, abi.Configure, abi.Explain}
