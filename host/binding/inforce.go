package binding

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/sleep"
)

// InForce is the policies that one board asks now.
type InForce struct {
	engines *Engines
	config  config.Board
	serving Serving

	mu       sync.Mutex
	declared []*Bound    // of the configuration: eligibility in order, then the ordering
	given    promoted    // by promotions
	state    string      // what given was made of
	rules    board.Rules // of the configuration
	another  another     // try to make given, if it failed
	ended    bool
	version  atomic.Uint64 // of what the catalog has for the board, as far as it was acted on
}

// stateFailed is the state of an InForce that could not make all that its board was given.
const stateFailed = "failed"

// promoted is policies by what they were made of: a name, a digest and parameters.
type promoted map[string]*Bound

func keyOf(r *catalog.Release) string { return r.Name + "\x00" + r.Digest + "\x00" + string(r.Params) }

// Board makes the policies that the configuration has for a board. The error
// names the place in the user's files.
func (e *Engines) Board(ctx context.Context, c *config.Config, b config.Board) (_ *InForce, err error) {
	r, g := &InForce{engines: e, config: b}, e.gauge(directory.TenantOf(b), b.Name)
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	one := func(rule config.Rule, path ...string) (*board.Rule, error) {
		bound, err := e.Rule(ctx, c, rule, g)
		if err != nil {
			at := c.Locate("board", directory.TenantOf(b)+"/"+b.Name, path...)
			if at != "" {
				at += ": "
			}
			return nil, job.Errorf(job.Invalid, "%sboard %q: the policy %s: %v", at, b.Name, rule.Policy, err)
		}
		r.declared = append(r.declared, bound)
		return &bound.Rule, nil
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

// Whole makes every policy that a board asks anew, apart from the shadow.
func (e *Engines) Whole(ctx context.Context, c *config.Config, b config.Board, d catalog.Deployment, g *quota.Gauge) (*InForce, error) {
	r, err := e.Board(ctx, c, b)
	if err != nil {
		return nil, err
	}
	for i := range d.Policies {
		x := &d.Policies[i]
		b, err := e.Release(ctx, &x.Releases[0], g)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		if r.given == nil {
			r.given = promoted{}
		}
		r.given[keyOf(&x.Releases[0])] = b
		if x.Eligibility {
			rule := b.Rule
			rule.Lenient = x.Releases[0].OnError == config.OnErrorAllow
			r.rules.Eligibility = append(r.rules.Eligibility, rule)
		}
		if x.Ordering {
			r.rules.Ordering = &b.Rule
		}
	}
	return r, nil
}

// Serving is the board that asks policies.
type Serving struct {
	Board   *board.Board
	Logger  *slog.Logger
	Running context.Context //nolint:containedctx // of the host: it ends what is being made
	Go      func(func())    // runs what waits until calls that began earlier have ended
}

// Rules returns the policies of the configuration, for the board that is to ask them.
func (r *InForce) Rules() board.Rules { return r.rules }

// Serve has a board ask the policies. Deploy follows, before anybody can ask the board.
func (r *InForce) Serve(s Serving) { r.serving = s }

// Outdated reports whether d names other policies than those that the board asks.
func (r *InForce) Outdated(d catalog.Deployment) bool { return r.version.Load() != d.Version }

// Bounds returns the policies that the board asks, as far as they are made. While
// others are being made in their place there are none.
func (r *InForce) Bounds() (declared, given []*Bound) {
	if !r.mu.TryLock() {
		return nil, nil
	}
	defer r.mu.Unlock()
	return slices.Clone(r.declared), slices.Collect(maps.Values(r.given))
}

// Unread denies every claim on a board while the catalog, which says which policies the
// board was given, has not been read: a restart must not let in whom a policy denies.
func (r *InForce) Unread() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != "" {
		return
	}
	r.state = "unread"
	r.version.Store(math.MaxUint64)
	rules := r.rules
	rules.Eligibility = append(slices.Clone(rules.Eligibility), board.Rule{Policy: missing{name: "of the catalog"}, Name: "of the catalog"})
	r.serving.Board.SetRules(rules)
}

// Deploy makes the policies that the board was given, and has it ask them: those that it
// asks already stay as they are. One that cannot be made denies everything, or orders
// nothing, until it can. What the board was given is asked for when it is this call's turn:
// a call that had to wait must not go back to what was so when it came.
func (r *InForce) Deploy(given func() catalog.Deployment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := given()
	text, _ := json.Marshal(d) // it has no value that could fail
	if r.state == string(text) || r.ended {
		return
	}
	r.version.Store(d.Version)
	again := r.another.begin(string(text))
	old, before := r.given, r.state
	r.given, r.state = promoted{}, string(text)
	if before == "" && len(d.Policies) == 0 && d.Shadow == nil {
		return // the board was never given anything
	}
	rules := r.rules
	rules.Eligibility = slices.Clone(rules.Eligibility)
	for i := range d.Policies {
		r.give(old, &rules, &d.Policies[i])
	}
	if d.Shadow != nil {
		rules.Shadow = r.release(old, d.Shadow)
	}
	if !again || r.another.fresh || before != stateFailed { // else the board goes by these already
		r.serving.Board.SetRules(rules)
	}
	if len(old) > 0 {
		r.retire(old)
	}
	r.tryAgain(given)
}

// RetireAfter is how long calls on a board with old settings may go on.
const RetireAfter = board.MaxWait + 5*time.Second

// retire ends policies that the board does not ask any more. Calls that began before
// may still ask them; nothing of them runs when none does.
func (r *InForce) retire(old promoted) {
	for _, p := range old {
		p.Retire()
	}
	s := r.serving
	s.Go(func() {
		_ = sleep.For(s.Running, RetireAfter)
		for _, p := range old {
			if err := p.Close(); err != nil {
				s.Logger.Warn("a policy that is not asked any more could not be closed", "error", err)
			}
		}
	})
}

// give adds one policy to a board's rules.
func (r *InForce) give(old promoted, rules *board.Rules, d *catalog.Deployed) {
	made := r.release(old, &d.Releases[0])
	if d.Eligibility {
		if made == nil {
			made = &board.Rule{Policy: missing{name: d.Name}, Name: d.Name, ID: d.Releases[0].Digest}
		}
		rule := *made
		rule.Lenient = d.Releases[0].OnError == config.OnErrorAllow
		rules.Eligibility = append(rules.Eligibility, rule)
	}
	if !d.Ordering {
		return
	}
	if made != nil {
		rule := *made
		rule.Lenient = d.Releases[0].OnError == config.OnErrorBuiltin
		rules.Ordering = &rule
	}
	if len(d.Releases) > 1 {
		rules.Before = r.release(old, &d.Releases[1])
	}
}

// bindTime bounds how long a policy may take to be read, compiled and started.
const bindTime = time.Minute

// release makes a policy of a version in the catalog, or takes it from those that
// the board asked before; nil if it cannot, which is logged.
func (r *InForce) release(old promoted, release *catalog.Release) *board.Rule {
	key := keyOf(release)
	if b := old[key]; b != nil {
		delete(old, key)
		r.given[key] = b
	}
	if b := r.given[key]; b != nil {
		rule := b.Rule
		return &rule
	}
	ctx, cancel := context.WithTimeout(r.serving.Running, bindTime)
	defer cancel()
	b, err := r.engines.Release(ctx, release, r.engines.gauge(r.config.Tenant, r.config.Name))
	if err != nil {
		r.serving.Logger.Error("a policy that the board was given cannot be run", "policy", release.Name, "digest", release.Digest, "error", err)
		r.state = stateFailed // it is tried again with the next change, at the latest
		r.version.Store(math.MaxUint64)
		r.another.failed(err)
		return nil
	}
	r.given[key], r.another.fresh = b, true
	rule := b.Rule
	return &rule
}

// Close ends the policies, after the board that asks them.
func (r *InForce) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.another.callOff()
	var failures []error
	for _, b := range slices.AppendSeq(r.declared, maps.Values(r.given)) {
		failures = append(failures, b.Close())
	}
	r.declared, r.given = nil, nil
	return errors.Join(failures...)
}

// missing stands for a policy that cannot be run: it denies.
type missing struct{ name string }

func (m missing) Manifest() policy.Manifest {
	return policy.Manifest{Name: m.name, Eligibility: true}
}

func (m missing) Eligible(context.Context, *policy.Batch, []policy.Verdict) error {
	return job.Errorf(job.Unavailable, "the policy %s cannot be run on this server; its log says why", m.name)
}

func (m missing) Score(context.Context, *policy.Batch, []int64) error { return nil }
