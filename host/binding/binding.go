// Package binding makes policies ready to be asked: it finds the module of a rule, of
// boardd's own, of the configuration or of the catalog, runs it in the engine where it
// belongs, with its parameters, and keeps those that one board asks now (InForce).
//
// Locks: InForce.mu is held while policies are made, which may take a minute, and none
// of this package's callers waits for it in a call of a worker.
package binding

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/host/trace"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
	"github.com/boardd/boardd/sdk/tempfolder"
)

// Options say where policies run and what they are charged to.
type Options struct {
	DataDir string // compiled policies are kept there; empty: in a folder that ends with the engines
	Child   wasm.Child
	Logger  *slog.Logger
	Tracer  *trace.Tracer // nil: nothing is traced
	Quotas  *quota.Quotas

	// Settings returns the present configuration, and Catalog the catalog, nil while
	// there is none.
	Settings func() *config.Config
	Catalog  func() *catalog.Catalog
}

// Engines run policies: those that the configuration names in this process, those
// that tenants bring in processes of their own.
type Engines struct {
	options  Options
	own      *wasm.Engine
	foreign  *wasm.Engine
	folder   *tempfolder.Folder // for compiled code where the host has no data folder; nil: none
	accounts sync.Map           // *wasm.Account of those whose modules foreign runs, by tenant
}

// policyFolders hold compiled policies by who runs them.
var policyFolders = tempfolder.Kind{
	Prefix: "boardd-policies-",
	Ours:   func(f fs.DirEntry) bool { return f.IsDir() && slices.Contains(policyParts, f.Name()) },
}

// policyParts are the folders for compiled policies of the two engines.
var policyParts = []string{"own", "foreign"}

// policyFolder is where compiled policies are kept, within the data folder.
const policyFolder = "policies"

// Open starts the engines. Close must be called, also after an error. ctx is that of
// everything that runs in them.
func Open(ctx context.Context, o Options) (e *Engines, err error) {
	e = &Engines{options: o}
	folder := filepath.Join(o.DataDir, policyFolder)
	if o.DataDir == "" {
		if e.folder, err = policyFolders.Make(""); err != nil {
			return e, err
		}
		folder = e.folder.Path
	}
	for _, part := range policyParts {
		if err := os.MkdirAll(filepath.Join(folder, part), 0o700); err != nil {
			return e, err
		}
	}
	if e.own, err = wasm.New(ctx, wasm.Config{CacheDir: filepath.Join(folder, "own"), Logger: o.Logger}); err != nil {
		return e, err
	}
	e.foreign, err = wasm.New(ctx, wasm.Config{
		CacheDir: filepath.Join(folder, "foreign"), Child: o.Child, Logger: o.Logger,
		Allowance: func() wasm.Allowance {
			l := o.Settings().Server.WithDefaults()
			return wasm.Allowance{Processes: l.PolicyProcesses, Memory: l.PolicyMemory}
		},
		Compilations: func() int { return int(o.Settings().Server.WithDefaults().Compilations) },
	})
	return e, err
}

// account is what a tenant's modules are charged to.
func (e *Engines) account(tenant string) *wasm.Account {
	found, ok := e.accounts.Load(tenant)
	if !ok {
		found, _ = e.accounts.LoadOrStore(tenant, e.foreign.Account(func() wasm.Allowance {
			l := e.options.Quotas.Limits(tenant)
			return wasm.Allowance{Processes: l.PolicyProcesses, Memory: l.PolicyMemory}
		}))
	}
	return found.(*wasm.Account)
}

// Use returns what the modules that tenants brought use now.
func (e *Engines) Use() wasm.Usage { return e.foreign.Usage() }

// TenantUse returns what the modules of one tenant use now.
func (e *Engines) TenantUse(tenant string) wasm.Usage { return e.account(tenant).Usage() }

// Prune takes away what was compiled of modules that nothing names any more.
func (e *Engines) Prune(digests map[string]bool) error {
	return e.foreign.Prune(func(digest string) bool { return digests[digest] })
}

// Close ends the engines and takes away their temporary folder.
func (e *Engines) Close() error {
	var failures []error
	for _, engine := range []*wasm.Engine{e.own, e.foreign} {
		if engine != nil {
			failures = append(failures, engine.Close())
		}
	}
	if e.folder != nil {
		failures = append(failures, e.folder.Close())
	}
	return errors.Join(failures...)
}

// gauge charges what the modules of a board use.
func (e *Engines) gauge(tenant, board string) *quota.Gauge {
	return e.options.Quotas.Gauge(tenant, board, quota.FuelPatience)
}

// Bound is a policy with its parameters, ready to be asked.
type Bound struct {
	Rule   board.Rule
	retire func()         // nil: there is nothing to retire
	close  []func() error // in this order
}

// Retire says that other policies took the place of this one. Calls that began before
// may still ask it, until Close.
func (b *Bound) Retire() {
	if b.retire != nil {
		b.retire()
	}
}

// Close ends the policy. Nobody asks it any more.
func (b *Bound) Close() error {
	var failures []error
	for _, end := range b.close {
		failures = append(failures, end())
	}
	return errors.Join(failures...)
}

// RuleID returns an ID that is the same on every host for the same policy with the same
// parameters.
func RuleID(what string, params json.RawMessage) string {
	sum := sha256.Sum256(append([]byte(what+"\x00"), params...))
	return hex.EncodeToString(sum[:8])
}

// Rule makes a policy of a rule of a board's settings.
func (e *Engines) Rule(ctx context.Context, c *config.Config, r config.Rule, g *quota.Gauge) (*Bound, error) {
	named := func(p config.Policy) bool { return p.Name == r.Policy }
	if r.Module == "" || slices.Contains(policies.Names(), r.Policy) || slices.ContainsFunc(c.Policies, named) {
		return e.Declared(ctx, c, r, g)
	}
	made, err := e.Release(ctx, &catalog.Release{Name: r.Policy, Digest: r.Module, Params: r.Params}, g) // a tenant brought it
	if err == nil {
		made.Rule.Lenient = r.OnError == config.OnErrorAllow || r.OnError == config.OnErrorBuiltin
	}
	return made, err
}

// Declared makes a policy of a rule of the configuration.
func (e *Engines) Declared(ctx context.Context, c *config.Config, r config.Rule, g *quota.Gauge) (made *Bound, err error) {
	defer func() { e.traced(made) }()
	set, err := r.Parameters()
	if err != nil {
		return nil, err
	}
	lenient := r.OnError == config.OnErrorAllow || r.OnError == config.OnErrorBuiltin
	if slices.Contains(policies.Names(), r.Policy) {
		p, err := policies.New(r.Policy, set)
		if err != nil {
			return nil, err
		}
		id := RuleID(r.Policy+" "+p.Manifest().Version, r.Params)
		return &Bound{Rule: board.Rule{Policy: p, Name: r.Policy, ID: id, Lenient: lenient}, close: []func() error{p.Close}}, nil
	}
	i := slices.IndexFunc(c.Policies, func(p config.Policy) bool { return p.Name == r.Policy })
	if i < 0 {
		return nil, job.Errorf(job.Invalid, "there is no policy %q", r.Policy)
	}
	b, err := c.Policies[i].Read()
	if err != nil {
		return nil, err
	}
	bound, err := bindModule(ctx, e.own, nil, b, r.Policy, r.Params, set, g)
	if err == nil {
		bound.Rule.Lenient = lenient
	}
	return bound, err
}

// Release reads a version from the catalog and makes a policy of it.
func (e *Engines) Release(ctx context.Context, release *catalog.Release, g *quota.Gauge) (*Bound, error) {
	c := e.options.Catalog()
	if c == nil {
		return nil, job.Errorf(job.Unavailable, "the catalog cannot be read now")
	}
	module, err := c.Module(ctx, release.Digest)
	if err != nil {
		return nil, err
	}
	set, err := (&config.Rule{Params: release.Params}).Parameters()
	if err != nil {
		return nil, &job.Error{Kind: job.Invalid, Message: "params: want a JSON object", Err: err}
	}
	made, err := bindModule(ctx, e.foreign, e.account(g.Tenant()), module, release.Name, release.Params, set, g)
	e.traced(made)
	return made, err
}

// traced has the evaluations of a policy traced, if there is a policy and a tracer.
func (e *Engines) traced(b *Bound) {
	if b != nil {
		b.Rule.Policy = e.options.Tracer.Policy(b.Rule.Policy, b.Rule.Name)
	}
}

// bindModule makes a policy of a module. One that fails before it was asked anything
// is refused as such.
func bindModule(
	ctx context.Context, engine *wasm.Engine, a *wasm.Account, b []byte, name string, params json.RawMessage, set map[string]any, g *quota.Gauge,
) (*Bound, error) {
	m, err := engine.LoadFor(ctx, b, a)
	if err != nil {
		return nil, err
	}
	p, err := m.BindFor(ctx, set, g, a)
	if err != nil {
		_ = m.Close() // the other error says more
		return nil, unusable(name, err)
	}
	return &Bound{
		Rule:   board.Rule{Policy: p, Name: name, ID: RuleID(m.Digest(), params)},
		retire: p.Retire,
		close:  []func() error{p.Close, m.Close},
	}, nil
}

// unusable says what is wrong with a policy that does not start. A fault of its
// module is a wrong request; that its process was lost may have other reasons.
func unusable(name string, err error) error {
	fault, ok := errors.AsType[*wasm.Fault](err)
	switch {
	case !ok:
		return err
	case fault.Kind == wasm.Lost:
		return &job.Error{Kind: job.Unavailable, Message: fmt.Sprintf("the policy %q does not start: %s; nothing was changed", name, cleaned(fault)), Err: err}
	}
	return &job.Error{Kind: job.Invalid, Message: fmt.Sprintf("the policy %q does not start: %s", name, cleaned(fault)), Err: err}
}

func cleaned(f *wasm.Fault) string {
	return shorten.To(strings.ToValidUTF8(f.Error(), "\uFFFD"), maxFault)
}

// maxFault is how many bytes of a fault's text are shown.
const maxFault = 1 << 10

// Check tries every policy of a configuration as its boards have it.
func (e *Engines) Check(ctx context.Context, c *config.Config) error {
	for _, b := range c.Boards {
		r, err := e.Board(ctx, c, b)
		if err != nil {
			return err
		}
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}
