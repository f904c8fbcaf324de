package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// pinRules checks the policies of a board's settings that came through the API,
// and notes which version is meant of those that a tenant brought.
func (s *Session) pinRules(ctx context.Context, t directory.Tenant, b *config.Board) error {
	if len(b.Eligibility) > config.MaxRules {
		return job.Errorf(job.Invalid, "board.eligibility: %d policies are too many: want at most %d", len(b.Eligibility), config.MaxRules)
	}
	for i := range b.Eligibility {
		r := &b.Eligibility[i]
		if err := s.pinRule(ctx, t, r, "eligibility", config.OnErrorDeny, config.OnErrorAllow); err != nil {
			return named(fmt.Sprintf("board.eligibility[%d]", i), err)
		}
	}
	if b.Ordering == nil {
		return nil
	}
	if err := s.pinRule(ctx, t, b.Ordering, "ordering", config.OnErrorLast, config.OnErrorBuiltin); err != nil {
		return named("board.ordering", err)
	}
	for _, d := range s.host.Directory().Deployment(*b).Policies {
		if d.Ordering {
			return job.Errorf(job.Precondition, "board.ordering: the board is ordered by the policy %q, which was promoted: roll that back first", d.Name)
		}
	}
	return nil
}

func (s *Session) pinRule(ctx context.Context, t directory.Tenant, r *config.Rule, use string, onError ...string) error {
	if r.OnError != "" && !slices.Contains(onError, r.OnError) {
		return job.Errorf(job.Invalid, "onError: %q: want one of %s", tenant.Clip(r.OnError), strings.Join(onError, ", "))
	}
	c := s.host.Settings()
	brought := slices.Contains(policies.Names(), r.Policy)
	ofConfig := slices.ContainsFunc(c.Policies, func(p config.Policy) bool { return p.Name == r.Policy })
	if brought || ofConfig {
		if r.Module != "" {
			return job.Errorf(job.Invalid, "digest: the policy %q was not put by a tenant: it has no versions to choose from", r.Policy)
		}
	} else {
		picked, err := s.pick(ctx, t, Promotion{Name: r.Policy, Digest: r.Module})
		if job.KindOf(err) == job.NotFound && r.Module == "" {
			known := s.policyNames(t)
			return job.Errorf(job.Invalid, "policy: there is no policy %q%s", tenant.Clip(r.Policy), nearest.Among(tenant.Clip(r.Policy), known))
		}
		if err != nil {
			return err
		}
		r.Module = picked.Digest
	}
	made, err := s.host.Policies().Rule(ctx, c, *r, s.host.Quotas().Gauge(t.Name, "", quota.FuelPatience))
	if err != nil {
		return err
	}
	m := made.Rule.Policy.Manifest()
	if err := config.CheckUse(use, &m); err != nil {
		_ = made.Close() // nobody asks it
		return job.Errorf(job.Invalid, "policy: %v", err)
	}
	return made.Close()
}

// policyNames returns the policies that a tenant's boards may ask.
func (s *Session) policyNames(t directory.Tenant) []string {
	known := policies.Names()
	for _, p := range s.host.Settings().Policies {
		known = append(known, p.Name)
	}
	for _, p := range s.host.Directory().Policies(t.Name) {
		known = append(known, p.Name)
	}
	return known
}

// asks reports whether a board's settings name a policy that a tenant put.
func asks(b *config.Board, name string) bool {
	is := func(r config.Rule) bool { return r.Policy == name && r.Module != "" }
	return slices.ContainsFunc(b.Eligibility, is) || b.Ordering != nil && is(*b.Ordering)
}
