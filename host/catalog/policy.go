package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// Limits on policies.
const (
	MaxModule         = 4 << 20 // bytes of a policy's module
	MaxPolicyVersions = 16      // versions of a policy that are kept; the oldest go first
)

// tries is how often a change that reads first is made anew because somebody
// else was faster.
const tries = 10

// PutPolicy adds a version to a policy, or makes the policy. A module that is
// its newest version already changes nothing. A policy that was left by an
// earlier tenant, as stale says, is begun anew.
func (c *Catalog) PutPolicy(ctx context.Context, p Policy, module []byte, by string, stale func(Policy) bool) (Policy, error) {
	if len(module) > MaxModule {
		return p, job.Errorf(job.Invalid, "module: it has %d bytes: want at most %d", len(module), MaxModule)
	}
	if d := c.Doubt(); d != nil {
		return p, d.refusal()
	}
	sum := sha256.Sum256(module)
	digest := hex.EncodeToString(sum[:])
	if err := c.putModule(ctx, digest, module); err != nil {
		return p, err
	}
	failpoint.Hit("catalog/policy/module-written")
	p, dropped, err := c.putVersion(ctx, p, PolicyVersion{Digest: digest, Size: len(module), Made: now(), By: by}, stale)
	if err != nil {
		c.sweep(ctx, []string{digest})
		return p, err
	}
	c.sweep(ctx, dropped)
	// Once more, now that the policy names it: a removal of unused modules that looked
	// before finds another version of the document, and one that looks later finds the use.
	return p, c.putModule(ctx, digest, module)
}

// putVersion writes a policy with one version more, and returns the modules of those
// that it has no more.
func (c *Catalog) putVersion(ctx context.Context, p Policy, version PolicyVersion, stale func(Policy) bool) (_ Policy, dropped []string, err error) {
	key := policyKey(p.Tenant, p.Name)
	for range tries {
		var present Policy
		if present, err = c.getPolicy(ctx, p.Tenant, p.Name); err != nil && job.KindOf(err) != job.NotFound {
			return p, nil, err
		}
		next := p
		next.Version = present.Version
		if !stale(present) {
			next.Versions = present.Versions
		}
		if len(next.Versions) > 0 && next.Versions[0].Digest == version.Digest {
			return next, nil, nil
		}
		next.Versions = append([]PolicyVersion{version}, next.Versions...)
		next.Versions = next.Versions[:min(len(next.Versions), MaxPolicyVersions)]
		if next.Version, err = c.write(ctx, key, next, present.Version); err == nil {
			for _, v := range present.Versions {
				if !next.has(v.Digest) {
					dropped = append(dropped, v.Digest)
				}
			}
			return next, dropped, nil
		}
		if k := job.KindOf(err); k != job.Aborted && k != job.AlreadyExists {
			return p, nil, err
		}
	}
	return p, nil, err
}

func (c *Catalog) getPolicy(ctx context.Context, tenant, name string) (Policy, error) {
	var p Policy
	doc, err := c.docs.Get(ctx, driver.Space{Name: space}, policyKey(tenant, name))
	if err != nil {
		return p, err
	}
	err = decode(doc, &p)
	p.Version = doc.Version
	return p, err
}

// RemovePolicy takes a policy away, and its modules where no other policy has
// them.
func (c *Catalog) RemovePolicy(ctx context.Context, p Policy) error {
	if err := c.remove(ctx, policyKey(p.Tenant, p.Name), p.Version); err != nil {
		return err
	}
	var digests []string
	for _, version := range p.Versions {
		digests = append(digests, version.Digest)
	}
	c.sweep(ctx, digests)
	return nil
}
