package host

import (
	"context"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// PutPolicy keeps a module as the newest version of a policy.
func (s *Session) PutPolicy(ctx context.Context, of, name string, module []byte) (catalog.Policy, error) {
	t, c, err := s.changing(ctx, "PutPolicy", of, "")
	if err != nil {
		return catalog.Policy{}, err
	}
	if err := tenant.CheckName(name); err != nil {
		return catalog.Policy{}, named("name", err)
	}
	if len(module) < 8 || string(module[:4]) != "\x00asm" {
		return catalog.Policy{}, job.Errorf(job.Invalid, "module: this is not WebAssembly: want a module in its binary form")
	}
	stale := func(old catalog.Policy) bool { return !c.View().Belongs(t.Name, old.Owner, t.Declared) }
	by := s.principal.Tenant + "/" + s.principal.TokenName
	return c.PutPolicy(ctx, catalog.Policy{Tenant: t.Name, Name: name, Owner: t.ID}, module, by, stale)
}

// Policies returns a tenant's policies, by name.
func (s *Session) Policies(of string) ([]catalog.Policy, error) {
	t, err := s.about("ListPolicies", of, "")
	if err != nil {
		return nil, err
	}
	view := s.host.catalog.view()
	var list []catalog.Policy
	for _, p := range catalog.Of(view.Policies, t.Name) {
		if view.Belongs(t.Name, p.Owner, t.Declared) {
			list = append(list, p)
		}
	}
	return list, nil
}

// DeletePolicy takes a policy away.
func (s *Session) DeletePolicy(ctx context.Context, of, name string) error {
	t, c, err := s.changing(ctx, "DeletePolicy", of, "")
	if err != nil {
		return err
	}
	view := c.View()
	p, ok := view.Policies[catalog.At{Tenant: t.Name, Name: name}]
	if !ok || !view.Belongs(t.Name, p.Owner, t.Declared) {
		return job.Errorf(job.NotFound, "there is no policy %q", tenant.Clip(name))
	}
	return c.RemovePolicy(ctx, p)
}

// RunPolicy checks a call that would run a policy and says that it cannot.
func (s *Session) RunPolicy(call, of, board string) error {
	if _, err := s.about(call, of, board); err != nil {
		return err
	}
	return job.Errorf(job.Unsupported, "%s: this server keeps policies and does not run them", call)
}
