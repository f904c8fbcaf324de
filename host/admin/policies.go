package admin

import (
	"context"
	"fmt"
	"slices"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/wasm"
	"github.com/boardd/boardd/host/wasm/module"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/nearest"
)

// PutPolicy keeps a module as the newest version of a policy.
func (s *Session) PutPolicy(ctx context.Context, of, name string, b []byte) (catalog.Policy, error) {
	t, c, err := s.changing(ctx, "PutPolicy", of, "")
	if err != nil {
		return catalog.Policy{}, err
	}
	if err := tenant.CheckName(name); err != nil {
		return catalog.Policy{}, named("name", err)
	}
	if slices.Contains(policies.Names(), name) {
		return catalog.Policy{}, job.Errorf(job.Invalid, "name: boardd brings a policy %q: choose another name", name)
	}
	if _, err := wasm.Check(b, module.Limits{Bytes: catalog.MaxModule}); err != nil {
		return catalog.Policy{}, named("module", err)
	}
	putting := &s.host.Quotas().Tenant(t.Name).Putting
	putting.Lock()
	defer putting.Unlock()
	if err := s.roomForPolicy(t, name, b); err != nil {
		return catalog.Policy{}, err
	}
	stale := func(old catalog.Policy) bool { return !c.View().Belongs(t.Name, old.Owner, t.Declared) }
	by := s.principal.Tenant + "/" + s.principal.TokenName
	return c.PutPolicy(ctx, catalog.Policy{Tenant: t.Name, Name: name, Owner: t.ID}, b, by, stale)
}

// roomForPolicy refuses a module that would be more than the tenant may put.
func (s *Session) roomForPolicy(t directory.Tenant, name string, b []byte) error {
	d := s.host.Directory()
	limits, at, mine := d.Limits(t.Name), catalog.At{Tenant: t.Name, Name: name}, d.Policies(t.Name)
	i := slices.IndexFunc(mine, func(p catalog.Policy) bool { return p.Name == name })
	if i < 0 && int64(len(mine)) >= limits.Policies {
		return quota.Over("policies", limits.Policies, "tenant")
	}
	next := d.View.With(at, wasm.Digest(b), len(b))
	var sum int64
	for _, size := range next.Named(t.Name) {
		sum += size
	}
	if sum > limits.PolicyBytes {
		return quota.Over("policy_bytes", limits.PolicyBytes, "tenant")
	}
	return nil
}

// Policies returns a tenant's policies, by name.
func (s *Session) Policies(of string) ([]catalog.Policy, error) {
	t, err := s.listing("ListPolicies", of, "")
	if err != nil {
		return nil, err
	}
	return s.host.Directory().Policies(t.Name), nil
}

// noPolicy says that a tenant does not have a policy.
func noPolicy(d directory.Directory, t directory.Tenant, name string) string {
	var names []string
	for _, p := range d.Policies(t.Name) {
		names = append(names, p.Name)
	}
	return fmt.Sprintf("there is no policy %q%s", tenant.Clip(name), nearest.Hint(tenant.Clip(name), names))
}

// DeletePolicy takes a policy away.
func (s *Session) DeletePolicy(ctx context.Context, of, name string) error {
	t, c, err := s.changing(ctx, "DeletePolicy", of, "")
	if err != nil {
		return err
	}
	view := c.View()
	for _, d := range catalog.Of(view.Deployments, t.Name) {
		uses := func(x catalog.Deployed) bool { return x.Name == name }
		if view.Belongs(t.Name, d.Owner, t.Declared) && (slices.ContainsFunc(d.Policies, uses) || d.Shadow != nil && d.Shadow.Name == name) {
			return job.Errorf(job.Precondition, "the board %q asks the policy %q: roll it back first", d.Board, name)
		}
	}
	for _, b := range catalog.Of(view.Boards, t.Name) {
		if view.Belongs(t.Name, b.Owner, t.Declared) && asks(&b.Board, name) {
			return job.Errorf(job.Precondition, "the settings of the board %q name the policy %q: change them first (boardd board update)", b.Name, name)
		}
	}
	p, ok := view.Policies.Get(catalog.At{Tenant: t.Name, Name: name})
	if !ok || !view.Belongs(t.Name, p.Owner, t.Declared) {
		return job.Errorf(job.NotFound, "%s", noPolicy(s.host.Directory(), t, name))
	}
	if err := c.RemovePolicy(ctx, p); err != nil {
		return err
	}
	s.host.PruneModules()
	return nil
}
