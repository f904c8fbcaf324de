package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/quota"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/policies"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/policy"
)

// Promotion names a version of a policy for a board.
type Promotion struct {
	Tenant, Board string
	Name          string
	Digest        string          // or the beginning of one, of at least 8 digits; empty: the newest version
	Params        json.RawMessage // a JSON object; nil: none
	OnError       string          // empty: the default
}

// ParseParams reads the parameters of a policy: a JSON object, or nothing.
func ParseParams(text []byte) (json.RawMessage, error) {
	if len(text) == 0 {
		return nil, nil
	}
	var object map[string]any
	if json.Unmarshal(text, &object) != nil || object == nil {
		return nil, job.Errorf(job.Invalid, "params: want a JSON object")
	}
	if len(object) == 0 {
		return nil, nil
	}
	var compact bytes.Buffer
	_ = json.Compact(&compact, text) // it was read just now
	return compact.Bytes(), nil
}

// MinDigest is the fewest digits by which a version of a policy is named.
const MinDigest = 8

// pick finds the version that a promotion names. It may have been put a moment ago, at another
// server.
func (s *Session) pick(ctx context.Context, t directory.Tenant, p Promotion) (catalog.Release, error) {
	if err := s.host.Lookup(ctx, catalog.Key("policy", t.Name, p.Name)); err != nil {
		return catalog.Release{}, err
	}
	view := s.host.Directory().View
	kept, ok := view.Policies.Get(catalog.At{Tenant: t.Name, Name: p.Name})
	if !ok || !view.Belongs(t.Name, kept.Owner, t.Declared) || len(kept.Versions) == 0 {
		if slices.Contains(policies.Names(), p.Name) {
			return catalog.Release{}, job.Errorf(job.Invalid, "the policy %q is boardd's own and has no versions: "+
				"give it to the board with boardd board update --eligibility or --ordering", p.Name)
		}
		return catalog.Release{}, job.Errorf(job.NotFound, "%s: put it first (boardd policy push)", noPolicy(s.host.Directory(), t, p.Name))
	}
	at := 0
	if p.Digest != "" {
		if len(p.Digest) < MinDigest {
			return catalog.Release{}, job.Errorf(job.Invalid, "digest: %q is too short: want at least %d digits", tenant.Clip(p.Digest), MinDigest)
		}
		at = slices.IndexFunc(kept.Versions, func(v catalog.PolicyVersion) bool { return strings.HasPrefix(v.Digest, p.Digest) })
		if at < 0 {
			return catalog.Release{}, job.Errorf(job.NotFound, "the policy %q has no version %q among its last %d", p.Name, tenant.Clip(p.Digest), len(kept.Versions))
		}
	}
	return catalog.Release{
		Name: p.Name, Digest: kept.Versions[at].Digest, Size: kept.Versions[at].Size, Params: p.Params, OnError: p.OnError,
		Made: time.Now().UTC().Truncate(time.Microsecond), By: s.principal.Tenant + "/" + s.principal.TokenName,
	}, nil
}

// versionOf finds the version that a promotion names, and tries it.
func (s *Session) versionOf(ctx context.Context, t directory.Tenant, p Promotion) (catalog.Release, policy.Manifest, error) {
	none := policy.Manifest{}
	r, err := s.pick(ctx, t, p)
	if err != nil {
		return r, none, err
	}
	made, err := s.host.Policies().Release(ctx, &r, s.host.Quotas().Gauge(t.Name, p.Board, quota.FuelPatience))
	if err != nil {
		return r, none, err
	}
	m := made.Rule.Policy.Manifest()
	return r, m, made.Close()
}

// Promote has a board ask a version of a policy from now on.
func (s *Session) Promote(ctx context.Context, p Promotion) (catalog.Deployment, error) {
	t, c, on, err := s.deploying(ctx, "PromotePolicy", p)
	if err != nil {
		return catalog.Deployment{}, err
	}
	r, m, err := s.versionOf(ctx, t, p)
	if err != nil {
		return catalog.Deployment{}, err
	}
	made := catalog.Deployed{Name: p.Name, Eligibility: m.Eligibility, Ordering: config.CheckUse("ordering", &m) == nil}
	if err := checkPromotion(on.Config(), &m, &made, p.OnError); err != nil {
		return catalog.Deployment{}, err
	}
	return s.change(ctx, c, t, on, func(d *catalog.Deployment) error {
		at := slices.IndexFunc(d.Policies, func(x catalog.Deployed) bool { return x.Name == p.Name })
		if made.Ordering {
			if other := slices.IndexFunc(d.Policies, func(x catalog.Deployed) bool { return x.Ordering && x.Name != p.Name }); other >= 0 {
				return job.Errorf(job.Precondition, "the board is ordered by the policy %q already: roll that back first", d.Policies[other].Name)
			}
		}
		if at < 0 {
			if len(d.Policies) >= config.MaxRules {
				return job.Errorf(job.Precondition, "the board asks %d policies already, which is the most", config.MaxRules)
			}
			at = len(d.Policies)
			d.Policies = append(d.Policies, made)
		}
		x := d.Policies[at]
		made.Releases = append([]catalog.Release{r}, x.Releases...)
		made.Releases = made.Releases[:min(len(made.Releases), catalog.MaxPromotions)]
		d.Policies[at] = made
		if d.Shadow != nil && d.Shadow.Name == p.Name {
			d.Shadow = nil
		}
		return nil
	})
}

// checkPromotion refuses what the board cannot ask, or what the configuration
// decides.
func checkPromotion(b config.Board, m *policy.Manifest, made *catalog.Deployed, onError string) error {
	if !made.Eligibility && !made.Ordering {
		use := "ordering"
		if err := config.CheckUse(use, m); err != nil {
			return job.Errorf(job.Precondition, "%v", err)
		}
	}
	named := func(r config.Rule) bool { return r.Policy == made.Name }
	switch {
	case slices.ContainsFunc(b.Eligibility, named) || b.Ordering != nil && named(*b.Ordering):
		return job.Errorf(job.Precondition, "the board's settings have a policy %q: give yours another name", made.Name)
	case made.Ordering && b.Ordering != nil:
		return job.Errorf(job.Precondition, "the board's settings order it, by the policy %q", b.Ordering.Policy)
	}
	var fit []string
	if made.Eligibility {
		fit = append(fit, config.OnErrorDeny, config.OnErrorAllow)
	}
	if made.Ordering {
		fit = append(fit, config.OnErrorLast, config.OnErrorBuiltin)
	}
	if onError != "" && !slices.Contains(fit, onError) {
		return job.Errorf(job.Invalid, "onError: %q: want one of %s", tenant.Clip(onError), strings.Join(fit, ", "))
	}
	return nil
}

// Rollback has a board ask the version of a policy that it asked before, or not
// to ask the policy at all if there was none.
func (s *Session) Rollback(ctx context.Context, p Promotion) (catalog.Deployment, error) {
	t, c, on, err := s.deploying(ctx, "RollbackPolicy", p)
	if err != nil {
		return catalog.Deployment{}, err
	}
	return s.change(ctx, c, t, on, func(d *catalog.Deployment) error {
		at := slices.IndexFunc(d.Policies, func(x catalog.Deployed) bool { return x.Name == p.Name })
		if at < 0 {
			return job.Errorf(job.NotFound, "the board asks no policy %q that was promoted", tenant.Clip(p.Name))
		}
		d.Policies = slices.Clone(d.Policies)
		if left := d.Policies[at].Releases[1:]; len(left) > 0 {
			d.Policies[at].Releases = left
		} else {
			d.Policies = slices.Delete(d.Policies, at, at+1)
		}
		return nil
	})
}

// Shadow has a board ask a version of a policy beside the others, and reports how they
// have differed since: at first nothing. If the board asks it already, Shadow only
// reports. With stop the board asks it no more.
func (s *Session) Shadow(ctx context.Context, p Promotion, stop bool) (*board.ShadowReport, error) {
	t, c, on, err := s.deploying(ctx, "ShadowPolicy", p)
	if err != nil {
		return nil, err
	}
	present := s.host.Directory().Deployment(on.Config()).Shadow
	if stop {
		report := on.ShadowReport()
		_, err := s.change(ctx, c, t, on, func(d *catalog.Deployment) error {
			if d.Shadow == nil || d.Shadow.Name != p.Name {
				return job.Errorf(job.NotFound, "the policy %q does not run in the shadow of this board", tenant.Clip(p.Name))
			}
			d.Shadow = nil
			return nil
		})
		return report, err
	}
	if present != nil && present.Name == p.Name && strings.HasPrefix(present.Digest, p.Digest) && string(present.Params) == string(p.Params) {
		return on.ShadowReport(), nil
	}
	r, _, err := s.versionOf(ctx, t, p)
	if err != nil {
		return nil, err
	}
	if _, err = s.change(ctx, c, t, on, func(d *catalog.Deployment) error { d.Shadow = &r; return nil }); err != nil {
		return nil, err
	}
	return on.ShadowReport(), nil
}

// deploying begins a call that changes what a board asks.
func (s *Session) deploying(ctx context.Context, call string, p Promotion) (directory.Tenant, *catalog.Catalog, *host.Hosted, error) {
	t, c, err := s.changing(ctx, call, p.Tenant, p.Board)
	if err != nil {
		return t, nil, nil, err
	}
	on, err := s.host.Look(ctx, catalog.At{Tenant: t.Name, Name: p.Board})
	if err != nil {
		return t, nil, nil, err
	}
	if on == nil {
		return t, nil, nil, host.NoBoard(p.Board)
	}
	if err := s.host.Await(ctx, on); err != nil {
		return t, nil, nil, err
	}
	return t, c, on, nil
}

// change writes what a board was given, and has this host act on it.
func (s *Session) change(ctx context.Context, c *catalog.Catalog, t directory.Tenant, on *host.Hosted, change func(*catalog.Deployment) error) (catalog.Deployment, error) {
	stale := func(d catalog.Deployment) bool { return !c.View().Belongs(t.Name, d.Owner, t.Declared) }
	d, err := c.ChangeDeployment(ctx, catalog.Deployment{Tenant: t.Name, Board: on.Config().Name, Owner: t.ID}, stale, change)
	if err == nil {
		s.host.Redeploy(catalog.At{Tenant: t.Name, Name: on.Config().Name})
	}
	return d, err
}
