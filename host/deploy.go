package host

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
	"github.com/boardd/boardd/sdk/sleep"
)

// rule has a board ask what it was given through the API besides what the
// configuration has for it, now and after each change, until the board ends.
func (s *hosted) rule(h *Host, b *board.Board, r *policyInForce) {
	r.board = b
	s.inForce.Store(r)
	s.deploy(h, b, r)
}

// await waits for the catalog, which says what the board was given, for a while.
// Where it cannot be read, the board goes on without granting claims: whoever a
// policy keeps away is not let in by a restart.
func (k *catalogHandle) await(ctx context.Context) {
	if k == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, openingTime)
	defer cancel()
	select {
	case <-k.ready:
	case <-ctx.Done():
		return
	}
	select {
	case <-k.open().Synced():
	case <-ctx.Done():
	}
}

// outdated reports whether a board was given other policies than it asks.
func (s *hosted) outdated(h *Host) bool {
	r := s.inForce.Load()
	return r != nil && r.version.Load() != h.deployment(s.config).Version
}

// redeploy looks whether a board was given other policies.
func (s *hosted) redeploy(h *Host) {
	if r := s.inForce.Load(); r != nil {
		s.deploy(h, r.board, r)
	}
}

// deploy makes the policies that a board was given, and has it ask them: those that it
// asks already stay as they are. One that cannot be made denies everything, or orders
// nothing, until it can.
func (s *hosted) deploy(h *Host, b *board.Board, r *policyInForce) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if h.catalog.unread() {
		if r.state == "" {
			r.state = "unread"
			r.version.Store(math.MaxUint64)
			rules := r.rules
			rules.Eligibility = append(slices.Clone(rules.Eligibility), board.Rule{Policy: missing{name: "of the catalog"}, Name: "of the catalog"})
			b.SetRules(rules)
		}
		return
	}
	d := h.deployment(s.config)
	text, _ := json.Marshal(d) // it has no value that could fail
	if r.state == string(text) || r.ended {
		return
	}
	r.version.Store(d.Version)
	old, before := r.given, r.state
	r.given, r.state = promoted{}, string(text)
	if before == "" && len(d.Policies) == 0 && d.Shadow == nil {
		return // nothing was given ever
	}
	rules := r.rules
	rules.Eligibility = slices.Clone(rules.Eligibility)
	for i := range d.Policies {
		h.give(s, r, old, &rules, &d.Policies[i])
	}
	if d.Shadow != nil {
		rules.Shadow = h.bindRelease(s, r, old, d.Shadow)
	}
	b.SetRules(rules)
	if len(old) > 0 {
		h.retirePolicies(s, old)
	}
}

// retirePolicies ends policies that a board does not ask any more. Calls that began
// before may still ask them; nothing of them runs when none does.
func (h *Host) retirePolicies(s *hosted, old promoted) {
	for _, p := range old {
		p.leave()
	}
	h.registry.leaving.Go(func() {
		_ = sleep.For(h.running, retireAfter)
		for _, p := range old {
			if err := p.end(); err != nil {
				s.logger.Warn("a policy that is not asked any more could not be closed", "error", err)
			}
		}
	})
}

// deployment returns what a board was given through the API.
func (h *Host) deployment(c config.Board) catalog.Deployment {
	view := h.catalog.view()
	d, ok := view.Deployments[catalog.At{Tenant: tenantOf(c), Name: c.Name}]
	if !ok || !view.Belongs(d.Tenant, d.Owner, h.declares(d.Tenant)) {
		return catalog.Deployment{}
	}
	return d
}

// give adds one policy to a board's rules.
func (h *Host) give(s *hosted, r *policyInForce, old promoted, rules *board.Rules, d *catalog.Deployed) {
	made := h.bindRelease(s, r, old, &d.Releases[0])
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
		rules.Before = h.bindRelease(s, r, old, &d.Releases[1])
	}
}

// bindTime bounds how long a policy may take to be read, compiled and started.
const bindTime = time.Minute

// bindRelease makes a policy of a version in the catalog, or takes it from those that
// the board asked before; nil if it cannot, which is logged.
func (h *Host) bindRelease(s *hosted, r *policyInForce, old promoted, release *catalog.Release) *board.Rule {
	key := keyOf(release)
	if b := old[key]; b != nil {
		delete(old, key)
		r.given[key] = b
	}
	if b := r.given[key]; b != nil {
		rule := b.rule
		return &rule
	}
	ctx, cancel := context.WithTimeout(h.running, bindTime)
	defer cancel()
	b, err := h.loadRelease(ctx, release, h.gauge(At{s.config.Tenant, s.config.Name}))
	if err != nil {
		s.logger.Error("a policy that the board was given cannot be run", "policy", release.Name, "digest", release.Digest, "error", err)
		r.state = "failed" // it is tried again with the next change
		r.version.Store(math.MaxUint64)
		return nil
	}
	r.given[key] = b
	rule := b.rule
	return &rule
}

// loadRelease reads a version from the catalog and makes a policy of it.
func (h *Host) loadRelease(ctx context.Context, release *catalog.Release, g *gauge) (*bound, error) {
	c := h.catalog.open()
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
	made, err := bindModule(ctx, h.engines.foreign, h.account(g.at.Tenant), module, release.Name, release.Params, set, g)
	h.traced(made)
	return made, err
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
