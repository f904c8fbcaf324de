package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/shorten"
	"github.com/boardd/boardd/sdk/tempfolder"
)

// engines run policies: those that the configuration names in this process, those
// that tenants bring in processes of their own.
type engines struct {
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

func (h *Host) openEngines(ctx context.Context) (err error) {
	e := &h.engines
	folder := filepath.Join(h.Settings().DataDir, policyFolder)
	if h.Settings().DataDir == "" {
		if e.folder, err = policyFolders.Make(""); err != nil {
			return err
		}
		folder = e.folder.Path
	}
	for _, part := range policyParts {
		if err := os.MkdirAll(filepath.Join(folder, part), 0o700); err != nil {
			return err
		}
	}
	if e.own, err = wasm.New(ctx, wasm.Config{CacheDir: filepath.Join(folder, "own"), Logger: h.logger}); err != nil {
		return err
	}
	e.foreign, err = wasm.New(ctx, wasm.Config{
		CacheDir: filepath.Join(folder, "foreign"), Child: h.config.PolicyChild, Logger: h.logger,
		Allowance: func() wasm.Allowance {
			l := h.Settings().Server.WithDefaults()
			return wasm.Allowance{Processes: l.PolicyProcesses, Memory: l.PolicyMemory}
		},
		Compilations: func() int { return int(h.Settings().Server.WithDefaults().Compilations) },
	})
	return err
}

// account is what a tenant's modules are charged to.
func (h *Host) account(tenant string) *wasm.Account {
	found, ok := h.engines.accounts.Load(tenant)
	if !ok {
		found, _ = h.engines.accounts.LoadOrStore(tenant, h.engines.foreign.Account(func() wasm.Allowance {
			l := h.limitsOf(tenant)
			return wasm.Allowance{Processes: l.PolicyProcesses, Memory: l.PolicyMemory}
		}))
	}
	return found.(*wasm.Account)
}

// PolicyUse is what the modules use that tenants brought.
func (h *Host) PolicyUse() wasm.Usage { return h.engines.foreign.Usage() }

func (e *engines) close() error {
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

// bound is a policy with its parameters, ready to be asked.
type bound struct {
	rule   board.Rule
	retire func()         // nil: there is nothing to retire
	close  []func() error // in this order
}

// leave says that other policies took the place of this one. Calls that began before
// may still ask it, until end.
func (b *bound) leave() {
	if b.retire != nil {
		b.retire()
	}
}

func (b *bound) end() error {
	var failures []error
	for _, end := range b.close {
		failures = append(failures, end())
	}
	return errors.Join(failures...)
}

// ruleID is the same on every host for the same policy with the same parameters.
func ruleID(what string, params json.RawMessage) string {
	sum := sha256.Sum256(append([]byte(what+"\x00"), params...))
	return hex.EncodeToString(sum[:8])
}

// bindRule makes a policy of a rule of a board's settings.
func (h *Host) bindRule(ctx context.Context, c *config.Config, r config.Rule, g *gauge) (*bound, error) {
	named := func(p config.Policy) bool { return p.Name == r.Policy }
	if r.Module == "" || slices.Contains(policies.Names(), r.Policy) || slices.ContainsFunc(c.Policies, named) {
		return h.bindDeclared(ctx, c, r, g)
	}
	made, err := h.loadRelease(ctx, &catalog.Release{Name: r.Policy, Digest: r.Module, Params: r.Params}, g) // a tenant brought it
	if err == nil {
		made.rule.Lenient = r.OnError == config.OnErrorAllow || r.OnError == config.OnErrorBuiltin
	}
	return made, err
}

// bindDeclared makes a policy of a rule of the configuration.
func (h *Host) bindDeclared(ctx context.Context, c *config.Config, r config.Rule, g *gauge) (made *bound, err error) {
	defer func() { h.traced(made) }()
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
		id := ruleID(r.Policy+" "+p.Manifest().Version, r.Params)
		return &bound{rule: board.Rule{Policy: p, Name: r.Policy, ID: id, Lenient: lenient}, close: []func() error{p.Close}}, nil
	}
	i := slices.IndexFunc(c.Policies, func(p config.Policy) bool { return p.Name == r.Policy })
	if i < 0 {
		return nil, job.Errorf(job.Invalid, "there is no policy %q", r.Policy)
	}
	b, err := config.ReadModule(c.Policies[i].Path)
	if err != nil {
		return nil, err
	}
	bound, err := bindModule(ctx, h.engines.own, nil, b, r.Policy, r.Params, set, g)
	if err == nil {
		bound.rule.Lenient = lenient
	}
	return bound, err
}

// traced has the evaluations of a policy be seen, if there is one and anybody looks.
func (h *Host) traced(b *bound) {
	if b != nil {
		b.rule.Policy = h.tracer.Policy(b.rule.Policy, b.rule.Name)
	}
}

// bindModule makes a policy of a module. One that fails before it was asked anything
// is refused as such.
func bindModule(
	ctx context.Context, engine *wasm.Engine, a *wasm.Account, b []byte, name string, params json.RawMessage, set map[string]any, g *gauge,
) (*bound, error) {
	m, err := engine.LoadFor(ctx, b, a)
	if err != nil {
		return nil, err
	}
	p, err := m.BindFor(ctx, set, g, a)
	if err != nil {
		_ = m.Close() // the other error says more
		return nil, unusable(name, err)
	}
	return &bound{
		rule:   board.Rule{Policy: p, Name: name, ID: ruleID(m.Digest(), params)},
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

// maxFault is how many bytes of a fault its author is told.
const maxFault = 1 << 10

// promoted is policies by what they were made of: a name, a digest and parameters.
type promoted map[string]*bound

func keyOf(r *catalog.Release) string { return r.Name + "\x00" + r.Digest + "\x00" + string(r.Params) }

// policyInForce is the policies that one board asks now.
type policyInForce struct {
	board *board.Board

	mu       sync.Mutex
	declared []*bound    // of the configuration: eligibility in order, then the ordering
	given    promoted    // by promotions
	state    string      // what given was made of
	rules    board.Rules // of the configuration
	ended    bool
	version  atomic.Uint64 // of what the catalog has for the board, as far as it was acted on
}

// bindBoard makes the policies that the configuration has for a board. The error
// names the place in the user's files.
func (h *Host) bindBoard(ctx context.Context, c *config.Config, b config.Board) (_ *policyInForce, err error) {
	r, g := &policyInForce{}, h.gauge(At{tenantOf(b), b.Name})
	defer func() {
		if err != nil {
			_ = r.end()
		}
	}()
	one := func(rule config.Rule, path ...string) (*board.Rule, error) {
		bound, err := h.bindRule(ctx, c, rule, g)
		if err != nil {
			at := c.Locate("board", tenantOf(b)+"/"+b.Name, path...)
			if at != "" {
				at += ": "
			}
			return nil, job.Errorf(job.Invalid, "%sboard %q: the policy %s: %v", at, b.Name, rule.Policy, err)
		}
		r.declared = append(r.declared, bound)
		return &bound.rule, nil
	}
	for i, rule := range b.Eligibility {
		made, err := one(rule, "eligibility", strconv.Itoa(i), "policy")
		if err != nil {
			return nil, err
		}
		r.rules.Eligibility = append(r.rules.Eligibility, *made)
	}
	if b.Ordering != nil {
		if r.rules.Ordering, err = one(*b.Ordering, "ordering", "policy"); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *policyInForce) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	var failures []error
	for _, b := range slices.AppendSeq(r.declared, maps.Values(r.given)) {
		failures = append(failures, b.end())
	}
	r.declared, r.given = nil, nil
	return errors.Join(failures...)
}

// checkPolicies tries every policy of a configuration as its boards have it.
func (h *Host) checkPolicies(ctx context.Context, c *config.Config) error {
	for _, b := range c.Boards {
		r, err := h.bindBoard(ctx, c, b)
		if err != nil {
			return err
		}
		if err := r.end(); err != nil {
			return err
		}
	}
	return nil
}
