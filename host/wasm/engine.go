// Package wasm runs policies that people bring along as WebAssembly modules.
//
// Engine.Load checks a module, makes it count what it does and compiles it;
// Module.Bind sets its parameters and gives a [Policy]. Nothing that a module does
// takes unbounded time or memory, and it remembers nothing between calls:
//
//	engine, err := wasm.New(ctx, wasm.Config{CacheDir: dir})
//	module, err := engine.Load(ctx, bytes)
//	rule, err := module.Bind(ctx, map[string]any{"by": "team"})
//	err = rule.Eligible(ctx, batch, verdicts)
//
// Close policies and modules before the engine. With Config.Child, modules are
// compiled and run in processes of their own: that is for modules of strangers,
// since a fault of the compiler then costs a worker and not the server.
//
// Locks, in the order in which they are taken where several are held: budget.mu, pool.mu,
// Engine.mu. pool.starting comes before pool.mu, and turns.mu is held alone.
//
// budget.mu is held while Config.Allowance and an account's limit are asked, which must not
// wait nor call the engine. Engine.mu is held while Prune deletes the code of a module,
// and while a module is closed that nobody uses any more. pool.starting is held while an
// instance is made in this process, which runs the module's own start. No other lock is
// held while a module runs or is compiled, and none while a process is started, asked or
// ended.
package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/policy/abi"
)

// Config says how modules are run. Its zero value runs them in this process, and
// compiles them anew each time.
type Config struct {
	Limits    module.Limits
	Fuel      Fuel
	CacheDir  string // compiled code, which is as trusted as the program; empty: none is kept
	Instances int    // of one rule at the same time; 0: one for each processor
	Child     Child  // nil: in this process
	Logger    *slog.Logger

	// Allowance is what the processes of all accounts may take together, and
	// Compilations how many run at once; nil, or a value of 0: the default. Both are
	// asked for whenever it matters, and count only with Child.
	Allowance    func() Allowance
	Compilations func() int

	// Interpreter runs modules without compiling them: much slower, for the same
	// answers and the same fuel. It is for tools that run little.
	Interpreter bool
}

// Fuel is what calls may use. The zero value of a field is its default.
type Fuel struct {
	Start     int64 // _initialize, boardd_alloc
	Configure int64
	Call      int64 // boardd_eligible, boardd_score, boardd_rank_keys
	Record    int64 // more for each record of the call
	Explain   int64
}

// The default amounts. One unit is about one instruction.
const (
	DefaultFuelStart     = 50_000_000
	DefaultFuelConfigure = 10_000_000
	DefaultFuelCall      = 500_000
	DefaultFuelRecord    = 10_000
	DefaultFuelExplain   = 2_000_000
)

func (f Fuel) withDefaults() Fuel {
	for _, d := range []struct {
		field *int64
		value int64
	}{
		{&f.Start, DefaultFuelStart},
		{&f.Configure, DefaultFuelConfigure},
		{&f.Call, DefaultFuelCall},
		{&f.Record, DefaultFuelRecord},
		{&f.Explain, DefaultFuelExplain},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return f
}

// of returns what a call of so many records may use.
func (f *Fuel) of(call abi.Call, records int) int64 {
	switch call {
	case abi.Explain:
		return f.Explain
	case abi.Configure:
		return f.Configure
	}
	return f.Call + f.Record*int64(records)
}

// IdleTime is for how long an instance stays without being used.
const IdleTime = time.Minute

// Engine compiles and runs modules.
type Engine struct {
	config  Config
	log     *slog.Logger
	runtime wazero.Runtime
	cache   wazero.CompilationCache

	budget  budget
	turns   turns
	loads   sync.WaitGroup
	running context.Context //nolint:containedctx // of what is being loaded; Close ends it
	stop    context.CancelFunc

	mu       sync.Mutex
	loaded   map[string]*loading // by digest
	compiled map[string]bool     // digests of modules whose code is in the cache, as far as this engine put it there
	closed   bool
}

// loading is a module that is loaded, or being loaded. module and err are read after
// ready; users is guarded by Engine.mu.
type loading struct {
	ready  chan struct{} // closed when module or err is there
	module *Module
	err    error
	users  int
}

// features are what modules may use: what the checker lets through.
const features = api.CoreFeaturesV2 &^ api.CoreFeatureSIMD

// runtimeConfig is the same wherever code is compiled, since the cache goes by it.
func runtimeConfig(interpreter bool) wazero.RuntimeConfig {
	c := wazero.NewRuntimeConfig()
	if interpreter {
		c = wazero.NewRuntimeConfigInterpreter()
	}
	return c.WithCoreFeatures(features).WithMemoryLimitPages(module.MaxMemoryPages).
		WithDebugInfoEnabled(false).WithCloseOnContextDone(false)
}

// New returns an engine.
func New(ctx context.Context, config Config) (*Engine, error) {
	config.Limits = config.Limits.WithDefaults()
	config.Fuel = config.Fuel.withDefaults()
	if config.Instances <= 0 {
		config.Instances = runtime.GOMAXPROCS(0)
	}
	e := &Engine{config: config, log: config.Logger, loaded: map[string]*loading{}, compiled: map[string]bool{}}
	e.budget.init(config.Allowance)
	e.running, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := privateFolder(config.CacheDir); err != nil {
		return nil, err
	}
	if config.Child != nil {
		if config.CacheDir == "" {
			return nil, job.Errorf(job.Invalid, "policies that run in processes of their own need a folder for compiled code")
		}
		return e, nil
	}
	c := runtimeConfig(config.Interpreter)
	if config.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(config.CacheDir)
		if err != nil {
			return nil, &job.Error{Kind: job.Unavailable, Message: "the folder for compiled policies can't be used", Err: err}
		}
		e.cache, c = cache, c.WithCompilationCache(cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, c)
	if err := offer(ctx, e.runtime); err != nil {
		_ = e.runtime.Close(ctx)
		return nil, err
	}
	return e, nil
}

// privateFolder makes a folder for compiled code that nobody else may write to:
// whoever can, can run what they like here.
func privateFolder(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &job.Error{Kind: job.Unavailable, Message: "the folder for compiled policies can't be made", Err: err}
	}
	info, err := os.Stat(dir)
	if err != nil {
		return &job.Error{Kind: job.Unavailable, Message: "the folder for compiled policies can't be used", Err: err}
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o022 != 0 {
		return job.Errorf(job.Invalid, "the folder for compiled policies, %s, can be written to by others (mode %04o): want 0700", dir, mode)
	}
	return nil
}

// Close ends the engine, after its rules and modules were closed.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop()
	e.loads.Wait()
	var err error
	if e.runtime != nil {
		err = e.runtime.Close(context.Background())
	}
	if e.cache != nil {
		_ = e.cache.Close(context.Background())
	}
	return err
}

// Digest is what a module is known by: the SHA-256 of its bytes in hexadecimal.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Check reads a module as Load does, without compiling it, and returns its
// manifest. It says everything about a module that can be said without running
// it; a refusal is a *module.Refusal.
func Check(b []byte, limits module.Limits) (*policy.Declared, error) {
	_, declared, err := read(b, limits)
	return declared, err
}

func read(b []byte, limits module.Limits) (*module.Module, *policy.Declared, error) {
	m, err := module.Read(b, limits)
	if err != nil {
		return nil, nil, err
	}
	if m.Manifest == nil {
		return nil, nil, job.Errorf(job.Invalid, "the module has no manifest: want a custom section %q", abi.Section)
	}
	declared, err := policy.ParseManifest(m.Manifest)
	if err != nil {
		return nil, nil, err
	}
	return m, declared, m.Contract(calls(declared.Manifest())...)
}

// calls are the calls that a manifest declares.
func calls(m policy.Manifest) (list []abi.Call) {
	if m.Eligibility {
		list = append(list, abi.Eligible)
	}
	if m.Ordering {
		list = append(list, abi.Score)
	}
	if m.Counts != "" {
		list = append(list, abi.RankKeys)
	}
	if m.Explains {
		list = append(list, abi.Explain)
	}
	return list
}
