package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/boardd/boardd/sdk/driver"
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
	sum := sha256.Sum256(module)
	digest := hex.EncodeToString(sum[:])
	if err := c.putModule(ctx, digest, module); err != nil {
		return p, err
	}
	p, err := c.putVersion(ctx, p, PolicyVersion{Digest: digest, Size: len(module), Made: now(), By: by}, stale)
	if err != nil {
		return p, err
	}
	// Once more, now that the policy names it: whoever takes unused modules away
	// looked before, and finds another version, or looks after and finds the use.
	return p, c.putModule(ctx, digest, module)
}

func (c *Catalog) putVersion(ctx context.Context, p Policy, version PolicyVersion, stale func(Policy) bool) (Policy, error) {
	key := policyKey(p.Tenant, p.Name)
	var err error
	for range tries {
		var present Policy
		if present, err = c.getPolicy(ctx, p.Tenant, p.Name); err != nil && job.KindOf(err) != job.NotFound {
			return p, err
		}
		next := p
		next.Version = present.Version
		if !stale(present) {
			next.Versions = present.Versions
		}
		if len(next.Versions) > 0 && next.Versions[0].Digest == version.Digest {
			return next, nil
		}
		next.Versions = append([]PolicyVersion{version}, next.Versions...)
		next.Versions = next.Versions[:min(len(next.Versions), MaxPolicyVersions)]
		if next.Version, err = c.write(ctx, key, next, present.Version); err == nil {
			return next, nil
		}
		if k := job.KindOf(err); k != job.Aborted && k != job.AlreadyExists {
			return p, err
		}
	}
	return p, err
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

// putModule writes a module under its digest, as a new version where it is there
// already.
func (c *Catalog) putModule(ctx context.Context, digest string, module []byte) error {
	var err error
	for range tries {
		var doc driver.Document
		doc, err = c.docs.Get(ctx, driver.Space{Name: moduleSpace}, digest)
		if err != nil && job.KindOf(err) != job.NotFound {
			return err
		}
		_, err = c.docs.Put(ctx, driver.Space{Name: moduleSpace}, driver.Document{Name: digest, Data: module}, doc.Version)
		if job.KindOf(err) != job.Aborted {
			return err
		}
	}
	return err
}

// Module returns a module by its digest, and checks that it is the one.
func (c *Catalog) Module(ctx context.Context, digest string) ([]byte, error) {
	doc, err := c.docs.Get(ctx, driver.Space{Name: moduleSpace}, digest)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(doc.Data); hex.EncodeToString(sum[:]) != digest {
		return nil, job.Errorf(job.Corrupt, "the module %s in the catalog is not the one that was put there", digest)
	}
	return doc.Data, nil
}

// RemovePolicy takes a policy away, and its modules where no other policy has
// them.
func (c *Catalog) RemovePolicy(ctx context.Context, p Policy) error {
	if err := c.remove(ctx, policyKey(p.Tenant, p.Name), p.Version); err != nil {
		return err
	}
	for _, version := range p.Versions {
		if err := c.sweepModule(ctx, version.Digest); err != nil {
			c.logger.Warn("a policy's module could not be taken away", "digest", version.Digest, "error", err)
		}
	}
	return nil
}

// sweepModule takes a module away that no policy names. Its version is read
// before the policies are, so that a policy that begins to name it meanwhile
// keeps it: see PutPolicy.
func (c *Catalog) sweepModule(ctx context.Context, digest string) error {
	doc, err := c.docs.Get(ctx, driver.Space{Name: moduleSpace}, digest)
	if err != nil {
		return ignore(err, job.NotFound)
	}
	policies, err := c.list(ctx, policyPrefix)
	if err != nil {
		return err
	}
	for _, d := range policies {
		var p Policy
		if err := decode(d, &p); err != nil {
			return err // who knows what it names
		}
		if slices.ContainsFunc(p.Versions, func(v PolicyVersion) bool { return v.Digest == digest }) {
			return nil
		}
	}
	return ignore(c.docs.Delete(ctx, driver.Space{Name: moduleSpace}, digest, doc.Version), job.NotFound, job.Aborted)
}

// ignore returns err unless it is of one of the kinds.
func ignore(err error, kinds ...job.Kind) error {
	if slices.Contains(kinds, job.KindOf(err)) {
		return nil
	}
	return err
}
