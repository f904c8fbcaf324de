package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/binding"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/quota"
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
	on, err := s.host.Look(ctx, catalog.At{Tenant: t.Name, Name: p.Board})
	if err != nil {
		return nil, err
	}
	if on == nil {
		return nil, host.NoBoard(p.Board)
	}
	if on.Config().Record == 0 {
		return nil, job.Errorf(job.Precondition, "the board %q records nothing that could be gone through: set record to how much of the past is to be kept, such as 24h", p.Board)
	}
	ctx, cancel := context.WithTimeout(ctx, MaxSimulation)
	defer cancel()
	if err := s.host.Quotas().Simulations.Enter(ctx, t.Name, s.host.Settings().Server.WithDefaults().Simulations); err != nil {
		return nil, err
	}
	defer s.host.Quotas().Simulations.Leave(t.Name)
	g := s.host.Quotas().Gauge(t.Name, p.Board, MaxSimulation) // nobody waits for a claim
	present, err := s.host.Policies().Whole(ctx, s.host.Settings(), on.Config(), s.host.Directory().Deployment(on.Config()), g)
	if err != nil {
		return nil, err
	}
	defer func() { _ = present.Close() }() // nothing else asks them
	made, err := s.candidate(ctx, t, p, g)
	if err != nil {
		return nil, err
	}
	defer func() { _ = made.Close() }() // likewise
	rules := withCandidate(present.Rules(), made)
	report, err := replay.Run(ctx, recording.Read(s.host.Recording(ctx, catalog.At{Tenant: t.Name, Name: p.Board})), present.Rules(), rules, o)
	switch {
	case errors.Is(err, job.NotFound):
		return nil, job.Errorf(job.Precondition, "nothing was recorded of the board %q yet", p.Board)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, job.Errorf(job.Precondition, "going through the recording takes more than %s: begin later (from)", MaxSimulation)
	case err != nil:
		return nil, err
	}
	return &Simulation{Report: *report, Present: titles(present.Rules()), Candidate: titles(rules)}, nil
}

// candidate makes the policy that is tried.
func (s *Session) candidate(ctx context.Context, t directory.Tenant, p Promotion, g *quota.Gauge) (*binding.Bound, error) {
	if slices.Contains(policies.Names(), p.Name) {
		if p.Digest != "" {
			return nil, job.Errorf(job.Invalid, "digest: boardd brings the policy %q, in one version", p.Name)
		}
		return s.host.Policies().Declared(ctx, s.host.Settings(), config.Rule{Policy: p.Name, Params: p.Params, OnError: p.OnError}, g)
	}
	r, err := s.pick(ctx, t, p)
	if err != nil {
		return nil, err
	}
	made, err := s.host.Policies().Release(ctx, &r, g)
	if err == nil {
		made.Rule.Lenient = p.OnError == config.OnErrorAllow
	}
	return made, err
}

// withCandidate puts a policy in the place of its earlier version, or beside the
// others, and has it order the board if it orders anything.
func withCandidate(rules board.Rules, made *binding.Bound) board.Rules {
	m := made.Rule.Policy.Manifest()
	rules.Eligibility = slices.Clone(rules.Eligibility)
	named := func(r board.Rule) bool { return r.Name == made.Rule.Name }
	if at := slices.IndexFunc(rules.Eligibility, named); at >= 0 {
		rules.Eligibility = slices.Delete(rules.Eligibility, at, at+1)
	}
	if m.Eligibility {
		rules.Eligibility = append(rules.Eligibility, made.Rule)
	}
	if m.Ordering || m.Counts != "" {
		rules.Ordering = &made.Rule
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
