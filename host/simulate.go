package host

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/host/replay"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
)

// MaxSimulation is how long a simulation may take.
const MaxSimulation = 2 * time.Minute

// Simulation is how a policy would have changed what was recorded.
type Simulation struct {
	replay.Report

	Present, Candidate string // the policies of each side
}

// Simulate goes through the recording of a board with what it asks now, and with a
// version of a policy besides or in place of that. A policy that boardd brings may
// be named, too.
func (s *Session) Simulate(ctx context.Context, p Promotion, o replay.Options) (*Simulation, error) {
	t, err := s.about("SimulatePolicy", p.Tenant, p.Board)
	if err != nil {
		return nil, err
	}
	on, err := s.host.look(ctx, At{t.Name, p.Board})
	if err != nil {
		return nil, err
	}
	if on == nil {
		return nil, noBoard(p.Board)
	}
	if on.config.Record == 0 {
		return nil, job.Errorf(job.Precondition, "the board %q records nothing that could be gone through: set record to how much of the past is to be kept, such as 24h", p.Board)
	}
	ctx, cancel := context.WithTimeout(ctx, MaxSimulation)
	defer cancel()
	if err := s.host.simulating.enter(ctx, t.Name, s.host.Settings().Server.WithDefaults().Simulations); err != nil {
		return nil, err
	}
	defer s.host.simulating.leave(t.Name)
	g := s.host.gauge(At{t.Name, p.Board})
	g.patience = MaxSimulation // nobody waits for a claim
	present, err := s.host.bindAll(ctx, on, g)
	if err != nil {
		return nil, err
	}
	defer func() { _ = present.end() }() // nothing else asks them
	made, err := s.candidate(ctx, t, p, g)
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.end() }() // likewise
	rules := withCandidate(present.rules, made)
	s.host.recordings.flush(ctx, At{t.Name, p.Board})
	report, err := replay.Run(ctx, recording.Read(s.host.recordings.of(At{t.Name, p.Board})), present.rules, rules, o)
	switch {
	case errors.Is(err, job.NotFound):
		return nil, job.Errorf(job.Precondition, "nothing was recorded of the board %q yet", p.Board)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, job.Errorf(job.Precondition, "going through the recording takes more than %s: begin later (from)", MaxSimulation)
	case err != nil:
		return nil, err
	}
	return &Simulation{Report: *report, Present: titles(present.rules), Candidate: titles(rules)}, nil
}

// bindAll makes every policy that a board asks anew, apart from the shadow.
func (h *Host) bindAll(ctx context.Context, on *hosted, g *gauge) (*policyInForce, error) {
	r, err := h.bindBoard(ctx, h.Settings(), on.config)
	if err != nil {
		return nil, err
	}
	d := h.deployment(on.config)
	for i := range d.Policies {
		x := &d.Policies[i]
		b, err := h.loadRelease(ctx, &x.Releases[0], g)
		if err != nil {
			return nil, errors.Join(err, r.end())
		}
		if r.given == nil {
			r.given = promoted{}
		}
		r.given[keyOf(&x.Releases[0])] = b
		if x.Eligibility {
			rule := b.rule
			rule.Lenient = x.Releases[0].OnError == config.OnErrorAllow
			r.rules.Eligibility = append(r.rules.Eligibility, rule)
		}
		if x.Ordering {
			r.rules.Ordering = &b.rule
		}
	}
	return r, nil
}

// candidate makes the policy that is tried.
func (s *Session) candidate(ctx context.Context, t Tenant, p Promotion, g *gauge) (*bound, error) {
	if slices.Contains(policies.Names(), p.Name) {
		if p.Digest != "" {
			return nil, job.Errorf(job.Invalid, "digest: boardd brings the policy %q, in one version", p.Name)
		}
		return s.host.bindDeclared(ctx, s.host.Settings(), config.Rule{Policy: p.Name, Params: p.Params, OnError: p.OnError}, g)
	}
	r, err := s.pick(t, p)
	if err != nil {
		return nil, err
	}
	made, err := s.host.loadRelease(ctx, &r, g)
	if err == nil {
		made.rule.Lenient = p.OnError == config.OnErrorAllow
	}
	return made, err
}

// withCandidate puts a policy in the place of its earlier version, or beside the
// others, and has it order the board if it orders anything.
func withCandidate(rules board.Rules, made *bound) board.Rules {
	m := made.rule.Policy.Manifest()
	rules.Eligibility = slices.Clone(rules.Eligibility)
	named := func(r board.Rule) bool { return r.Name == made.rule.Name }
	if at := slices.IndexFunc(rules.Eligibility, named); at >= 0 {
		rules.Eligibility = slices.Delete(rules.Eligibility, at, at+1)
	}
	if m.Eligibility {
		rules.Eligibility = append(rules.Eligibility, made.rule)
	}
	if m.Ordering || m.Counts != "" {
		rules.Ordering = &made.rule
	}
	return rules
}

// titles names policies and their versions.
func titles(rules board.Rules) string {
	var text string
	add := func(use string, r *board.Rule) {
		if text != "" {
			text += ", "
		}
		text += r.Name + " " + r.Policy.Manifest().Version + " (" + use + ")"
	}
	for i := range rules.Eligibility {
		add("eligibility", &rules.Eligibility[i])
	}
	if rules.Ordering != nil {
		add("ordering", rules.Ordering)
	}
	if text == "" {
		return "none"
	}
	return text
}
