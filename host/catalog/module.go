package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// Modules are kept under their digests, for as long as a record names them: a version
// of a policy, a release that a board was given and can be taken back to, a rule of a
// board's settings. Whoever takes a name away looks afterwards whether it was the
// last. Whoever adds one sees to it afterwards that the module is there.

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

// Module returns a module by its digest, and checks that it is the one. What the store
// does not have may be remembered.
func (c *Catalog) Module(ctx context.Context, digest string) ([]byte, error) {
	doc, err := c.docs.Get(ctx, driver.Space{Name: moduleSpace}, digest)
	if err != nil {
		if data, ok := c.memory.module(digest); ok {
			return data, nil
		}
		return nil, err
	}
	if sum := sha256.Sum256(doc.Data); hex.EncodeToString(sum[:]) != digest {
		return nil, job.Errorf(job.Corrupt, "the module %s in the catalog is not the one that was put there", digest)
	}
	return doc.Data, nil
}

// keep sees to it that a module stays that a record has begun to name as a version of
// a policy. While the policy has the version, whoever takes unused modules away finds
// one of the two. Otherwise the module is written anew, so that one who looked before
// finds another version.
func (c *Catalog) keep(ctx context.Context, tenant, policy, digest string) error {
	p, err := c.getPolicy(ctx, tenant, policy)
	if err != nil && job.KindOf(err) != job.NotFound {
		return err
	}
	if p.has(digest) {
		return nil
	}
	module, err := c.Module(ctx, digest)
	if err == nil {
		err = c.putModule(ctx, digest, module)
	}
	if job.KindOf(err) == job.NotFound {
		return job.Errorf(job.Aborted, "the policy %q has no such version any more: choose another one", policy)
	}
	return err
}

func (p *Policy) has(digest string) bool {
	return slices.ContainsFunc(p.Versions, func(v PolicyVersion) bool { return v.Digest == digest })
}

// modules are those that a board's settings name.
func (b *Board) modules() []string { return modulesOf(&b.Board) }

func modulesOf(b *config.Board) (list []string) {
	for _, r := range b.Eligibility {
		if r.Module != "" {
			list = append(list, r.Module)
		}
	}
	if b.Ordering != nil && b.Ordering.Module != "" {
		list = append(list, b.Ordering.Module)
	}
	return list
}

// releases are what a board asks, can be taken back to, or has in its shadow.
func (d *Deployment) releases() (list []Release) {
	for _, p := range d.Policies {
		list = append(list, p.Releases...)
	}
	if d.Shadow != nil {
		list = append(list, *d.Shadow)
	}
	return list
}

func (d *Deployment) modules() (list []string) {
	for _, r := range d.releases() {
		list = append(list, r.Digest)
	}
	return list
}

// Named returns the modules that the records of a tenant name, and their sizes. One
// whose size nobody wrote down counts as the largest.
func (v *View) Named(tenant string) map[string]int64 {
	named := map[string]int64{}
	for _, d := range Of(v.Deployments, tenant) {
		for _, r := range d.releases() {
			named[r.Digest] = MaxModule
			if r.Size > 0 {
				named[r.Digest] = int64(r.Size)
			}
		}
	}
	for _, b := range Of(v.Boards, tenant) {
		for _, digest := range b.modules() {
			if _, known := named[digest]; !known {
				named[digest] = MaxModule
			}
		}
	}
	for _, p := range Of(v.Policies, tenant) {
		for _, version := range p.Versions {
			named[version.Digest] = int64(version.Size)
		}
	}
	return named
}

// With is the view as it would be if a policy had one version more.
func (v *View) With(at At, digest string, size int) *View {
	next := *v
	next.Policies = v.Policies.clone()
	p, _ := next.Policies.Get(at)
	p.Tenant, p.Name = at.Tenant, at.Name
	p.Versions = append([]PolicyVersion{{Digest: digest, Size: size}}, p.Versions...)
	p.Versions = p.Versions[:min(len(p.Versions), MaxPolicyVersions)]
	next.Policies.put(at, p)
	return &next
}

// sweep takes away those of the modules that nothing names any more. What goes wrong
// is logged: it costs only space.
func (c *Catalog) sweep(ctx context.Context, digests []string) {
	slices.Sort(digests)
	for _, digest := range slices.Compact(digests) {
		if err := c.sweepModule(ctx, digest); err != nil {
			c.logger.Warn("a policy's module could not be taken away", "digest", digest, "error", err)
		}
	}
}

// sweepModule takes a module away that no record names. Its version is read before
// the records are, so that one which begins to name it meanwhile keeps it: see keep
// and PutPolicy.
func (c *Catalog) sweepModule(ctx context.Context, digest string) error {
	doc, err := c.docs.Get(ctx, driver.Space{Name: moduleSpace}, digest)
	if err != nil {
		return ignore(err, job.NotFound)
	}
	var unreadable []error
	view, err := ReadView(ctx, c.docs, func(err error) { unreadable = append(unreadable, err) })
	if err != nil {
		return err
	}
	if len(unreadable) > 0 {
		return errors.Join(unreadable...) // who knows what it names
	}
	if view.names(digest) {
		return nil
	}
	return ignore(c.docs.Delete(ctx, driver.Space{Name: moduleSpace}, digest, doc.Version), job.NotFound, job.Aborted)
}

// names reports whether any record names a module.
func (v *View) names(digest string) bool {
	for _, p := range v.Policies.All() {
		if p.has(digest) {
			return true
		}
	}
	for _, d := range v.Deployments.All() {
		if slices.Contains(d.modules(), digest) {
			return true
		}
	}
	for _, b := range v.Boards.All() {
		if slices.Contains(b.modules(), digest) {
			return true
		}
	}
	return false
}

// Digests returns every module that a record names.
func (v *View) Digests() map[string]bool {
	all := map[string]bool{}
	add := func(list []string) {
		for _, digest := range list {
			all[digest] = true
		}
	}
	for _, p := range v.Policies.All() {
		for _, version := range p.Versions {
			all[version.Digest] = true
		}
	}
	for _, d := range v.Deployments.All() {
		add(d.modules())
	}
	for _, b := range v.Boards.All() {
		add(b.modules())
	}
	return all
}

// without returns those of a list that are not in another one.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// ignore returns err unless it is of one of the kinds.
func ignore(err error, kinds ...job.Kind) error {
	if slices.Contains(kinds, job.KindOf(err)) {
		return nil
	}
	return err
}
