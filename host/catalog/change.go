package catalog

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// Every change is a compare-and-set of one document. A version of 0 stands for
// none: what is made must not be there, what is changed must.

// write writes a record if the document's version is ifVersion, returns the new
// version, and waits until this host sees it.
func (c *Catalog) write(ctx context.Context, key string, record any, ifVersion uint64) (uint64, error) {
	if d := c.Doubt(); d != nil {
		return 0, d.refusal()
	}
	data, err := encode(record)
	if err != nil {
		return 0, err
	}
	failpoint.Hit("catalog/before-put")
	version, err := c.docs.Put(ctx, driver.Space{Name: space}, driver.Document{Name: key, Data: data}, ifVersion)
	failpoint.Hit("catalog/after-put")
	if err != nil {
		return 0, changeError(err, key, ifVersion)
	}
	c.awaitView(ctx, func(v *View) bool { return v.version(key) >= version })
	return version, nil
}

// remove takes a document away if its version is ifVersion. That it is deleted on
// purpose is written before it is.
func (c *Catalog) remove(ctx context.Context, key string, ifVersion uint64) error {
	if d := c.Doubt(); d != nil {
		return d.refusal()
	}
	if err := c.noteDeletion(ctx, key, ifVersion); err != nil {
		return err
	}
	failpoint.Hit("catalog/before-delete")
	if err := c.docs.Delete(ctx, driver.Space{Name: space}, key, ifVersion); err != nil {
		return changeError(err, key, ifVersion)
	}
	failpoint.Hit("catalog/after-delete")
	c.awaitView(ctx, func(v *View) bool { return v.version(key) != ifVersion })
	return nil
}

// changeError says what a store's refusal means to whoever asked for the change.
func changeError(err error, key string, ifVersion uint64) error {
	kind, owner, name := SplitKey(key)
	if name == "" {
		name = owner
	}
	switch job.KindOf(err) {
	case job.Aborted:
		if ifVersion == 0 {
			return job.Errorf(job.AlreadyExists, "there is a %s %q already", kind, name)
		}
		return job.Errorf(job.Aborted, "somebody changed the %s %q meanwhile: read it again", kind, name)
	case job.NotFound:
		return job.Errorf(job.NotFound, "there is no %s %q", kind, name)
	}
	return err
}

// CreateTenant makes a tenant.
func (c *Catalog) CreateTenant(ctx context.Context, t Tenant) (Tenant, error) {
	t.ID, t.Made = newID(), now()
	var err error
	t.Version, err = c.write(ctx, tenantKey(t.Name), t, 0)
	return t, err
}

// UpdateTenant writes a tenant anew if it has t.Version.
func (c *Catalog) UpdateTenant(ctx context.Context, t Tenant) (Tenant, error) {
	var err error
	t.Version, err = c.write(ctx, tenantKey(t.Name), t, t.Version)
	return t, err
}

// RemoveTenant takes a tenant's record away.
func (c *Catalog) RemoveTenant(ctx context.Context, t Tenant) error {
	return c.remove(ctx, tenantKey(t.Name), t.Version)
}

// CreateToken keeps a token. One of the same name that was left by an earlier
// tenant, as stale says, is replaced.
func (c *Catalog) CreateToken(ctx context.Context, t Token, stale func(Token) bool) (Token, error) {
	t.ID, t.Made = newID(), now()
	var before uint64
	if old, ok := c.View().Tokens.Get(At{t.Tenant, t.Name}); ok && stale(old) {
		before = old.Version
	}
	var err error
	t.Version, err = c.write(ctx, tokenKey(t.Tenant, t.Name), t, before)
	return t, err
}

// RemoveToken takes a token away for good.
func (c *Catalog) RemoveToken(ctx context.Context, t Token) error {
	return c.remove(ctx, tokenKey(t.Tenant, t.Name), t.Version)
}

// CreateBoard writes a new board. All hosts together keep at most most boards of the
// tenant (0: any number). Of several that are made at once at the limit, all may be
// refused.
func (c *Catalog) CreateBoard(ctx context.Context, b Board, most int) (Board, error) {
	b.ID, b.Made = newID(), now()
	var err error
	if b.Version, err = c.write(ctx, boardKey(b.Tenant, b.Name), b, 0); err != nil {
		return b, err
	}
	if err := c.keepRules(ctx, &b); err != nil || most == 0 {
		return b, err
	}
	docs, err := c.list(ctx, boardKey(b.Tenant, ""), most+1)
	if err != nil {
		return b, err
	}
	if len(docs) <= most {
		return b, nil
	}
	if err := c.remove(ctx, boardKey(b.Tenant, b.Name), b.Version); err != nil && job.KindOf(err) != job.NotFound {
		return b, err
	}
	return b, TooManyBoards(b.Tenant, most)
}

// list returns the documents whose names begin with prefix, as the store has them: the first
// most, so that whoever has a tenant's few boards counted does not read all that come after.
func (c *Catalog) list(ctx context.Context, prefix string, most int) ([]driver.Document, error) {
	docs, err := c.docs.List(ctx, driver.Space{Name: space}, prefix, most)
	return slices.DeleteFunc(docs, func(d driver.Document) bool { return !strings.HasPrefix(d.Name, prefix) }), err
}

// TooManyBoards is the error of a board above the limit.
func TooManyBoards(tenant string, most int) error {
	return job.Errorf(job.QuotaExceeded, "the tenant %q has %d boards, which is its limit", tenant, most)
}

// UpdateBoard writes a board anew if it has b.Version.
func (c *Catalog) UpdateBoard(ctx context.Context, b Board) (Board, error) {
	before, _ := c.View().Boards.Get(At{b.Tenant, b.Name})
	var err error
	if b.Version, err = c.write(ctx, boardKey(b.Tenant, b.Name), b, b.Version); err != nil {
		return b, err
	}
	c.sweep(ctx, without(before.modules(), b.modules()))
	return b, c.keepRules(ctx, &b)
}

// keepRules keeps the modules that a board's settings name.
func (c *Catalog) keepRules(ctx context.Context, b *Board) error {
	rules := slices.Clone(b.Eligibility)
	if b.Ordering != nil {
		rules = append(rules, *b.Ordering)
	}
	for _, r := range rules {
		if r.Module == "" {
			continue
		}
		if err := c.keep(ctx, b.Tenant, r.Policy, r.Module); err != nil {
			return err
		}
	}
	return nil
}

// RemoveBoard takes a board's record away.
func (c *Catalog) RemoveBoard(ctx context.Context, b Board) error {
	err := c.remove(ctx, boardKey(b.Tenant, b.Name), b.Version)
	if err == nil {
		c.sweep(ctx, b.modules())
	}
	return err
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
