package admin

import (
	"slices"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/binding"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/policy"
)

// AskedPolicy is a policy that a board asks, as this host runs it.
type AskedPolicy struct {
	Name        string
	Digest      string // empty: it is not in the catalog
	Params      string // a JSON object; empty: none
	OnError     string // empty: the default
	Eligibility bool
	Ordering    bool
	Declared    bool // in the configuration: it cannot be changed here
	Made        time.Time
	By          string   // TENANT/TOKEN
	Earlier     []string // digests of the versions that were asked before, the latest first

	Running  bool // false: it cannot be run on this host, or not yet
	Manifest policy.Manifest
	Fuel     int64 // that the last call of it used; 0: not known
}

// Asked is what a board asks.
type Asked struct {
	Policies []AskedPolicy // those of the configuration, then those that were promoted
	Shadow   *AskedPolicy
	Report   board.ShadowReport // of the shadow
}

// Asked returns which policies a board asks. Who may list policies may see it.
func (s *Session) Asked(of, name string) (Asked, error) {
	t, err := s.listing("ListPolicies", of, name)
	if err != nil {
		return Asked{}, err
	}
	on := s.host.Hosted(catalog.At{Tenant: t.Name, Name: name})
	if on == nil {
		return Asked{}, host.NoBoard(tenant.Clip(name))
	}
	declared, given := on.Bounds()
	var a Asked
	for i, r := range on.Config().Eligibility {
		a.Policies = append(a.Policies, declaredPolicy(r, "eligibility", declared, i))
	}
	if r := on.Config().Ordering; r != nil {
		a.Policies = append(a.Policies, declaredPolicy(*r, "ordering", declared, len(on.Config().Eligibility)))
	}
	d := s.host.Directory().Deployment(on.Config())
	for i := range d.Policies {
		x := &d.Policies[i]
		p := releasedPolicy(&x.Releases[0], given)
		p.Eligibility, p.Ordering = x.Eligibility, x.Ordering
		for _, r := range x.Releases[1:] {
			p.Earlier = append(p.Earlier, r.Digest)
		}
		a.Policies = append(a.Policies, p)
	}
	if d.Shadow != nil {
		p := releasedPolicy(d.Shadow, given)
		a.Shadow, a.Report = &p, *on.ShadowReport()
	}
	return a, nil
}

func declaredPolicy(r config.Rule, use string, all []*binding.Bound, at int) AskedPolicy {
	p := AskedPolicy{
		Name: r.Policy, Params: string(r.Params), OnError: r.OnError, Declared: true,
		Eligibility: use == "eligibility", Ordering: use == "ordering",
	}
	if at < len(all) {
		p.runs(all[at])
	}
	return p
}

func releasedPolicy(r *catalog.Release, all []*binding.Bound) AskedPolicy {
	p := AskedPolicy{Name: r.Name, Digest: r.Digest, Params: string(r.Params), OnError: r.OnError, Made: r.Made, By: r.By}
	id := binding.RuleID(r.Digest, r.Params)
	if i := slices.IndexFunc(all, func(b *binding.Bound) bool { return b.Rule.Name == r.Name && b.Rule.ID == id }); i >= 0 {
		p.runs(all[i])
	}
	return p
}

// runs fills in what is known of a policy that runs.
func (p *AskedPolicy) runs(b *binding.Bound) {
	p.Running, p.Manifest = true, b.Rule.Policy.Manifest()
	if metered, ok := b.Rule.Policy.(interface{ Used() int64 }); ok {
		p.Fuel = metered.Used()
	}
}
