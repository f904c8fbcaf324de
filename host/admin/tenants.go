package admin

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// What follows, here and in the files of the other nouns, carries out the calls
// of AdminService. Each begins by asking the table of calls, by the call's name,
// with the tenant that the request names.

// declared is the error of a change of what the configuration declares.
func declared(kind, name string) error {
	return job.Errorf(job.Precondition, "the %s %q is declared in the server's configuration and can only be changed there", kind, name)
}

// about checks a call of AdminService and returns the tenant that it is about,
// which lives. Before the catalog was read there may be more tenants than are found.
func (s *Session) about(call, name, board string) (directory.Tenant, error) {
	name, err := s.principal.CheckAdmin(call, name, board)
	if err != nil {
		return directory.Tenant{}, err
	}
	known := s.host.Known() // before the directory is looked at
	t, err := s.host.Directory().Tenant(name)
	if err != nil {
		return t, cmp.Or(known, err)
	}
	if !t.Deleted.IsZero() {
		return directory.Tenant{}, job.Errorf(job.Precondition, "the tenant %q was deleted, and its jobs are kept until it is deleted with purge", name)
	}
	return t, nil
}

// listing is about for a call that lists what the catalog keeps: none is answered before
// that was read.
func (s *Session) listing(call, name, board string) (directory.Tenant, error) {
	t, err := s.about(call, name, board)
	if err != nil {
		return t, err
	}
	return t, s.host.Known()
}

// changing is about for a call that changes the catalog.
func (s *Session) changing(ctx context.Context, call, name, board string) (directory.Tenant, *catalog.Catalog, error) {
	if name != "" && s.principal.Has(tenant.Operator) {
		if _, err := s.host.Directory().Tenant(name); err != nil {
			if err := s.host.Lookup(ctx, catalog.Key("tenant", name)); err != nil {
				return directory.Tenant{}, nil, err
			}
		}
	}
	t, err := s.about(call, name, board)
	if err != nil {
		return t, nil, err
	}
	c, err := s.host.Catalog(ctx)
	return t, c, err
}

// checkLimits refuses limits that make no sense.
func checkLimits(l config.Limits, ofBoard bool) error {
	for _, limit := range l.Each() {
		switch {
		case *limit.Value < 0 || *limit.Value > config.MaxLimit:
			return job.Errorf(job.Invalid, "limits.%s: want 1 to %d, or none for no limit, got %d", limit.Name, int64(config.MaxLimit), *limit.Value)
		case ofBoard && !limit.Board && *limit.Value != 0:
			return job.Errorf(job.Invalid, "limits.%s: a board has no such limit, only a tenant", limit.Name)
		}
	}
	return nil
}

// checkVersion refuses a change of a version that is not the present one.
func checkVersion(want, present uint64) error {
	if want != 0 && want != present {
		return job.Errorf(job.Aborted, "the version is %d by now, not %d: read it again", present, want)
	}
	return nil
}

// CreateTenant makes a tenant.
func (s *Session) CreateTenant(ctx context.Context, name string, limits config.Limits) (directory.Tenant, error) {
	if err := s.principal.Check("CreateTenant", ""); err != nil {
		return directory.Tenant{}, err
	}
	if err := tenant.CheckName(name); err != nil {
		return directory.Tenant{}, named("name", err)
	}
	if err := checkLimits(limits, false); err != nil {
		return directory.Tenant{}, err
	}
	if s.host.Directory().Declares(name) {
		return directory.Tenant{}, job.Errorf(job.AlreadyExists, "there is a tenant %q already, in the server's configuration", name)
	}
	c, err := s.host.Catalog(ctx)
	if err != nil {
		return directory.Tenant{}, err
	}
	if t, ok := c.View().Tenants.Get(name); ok && !t.Deleted.IsZero() {
		return directory.Tenant{}, job.Errorf(job.AlreadyExists, "there was a tenant %q, and its jobs are kept: delete it with purge before the name is used again", name)
	}
	t, err := c.CreateTenant(ctx, catalog.Tenant{Name: name, Limits: limits})
	return directory.Tenant{Tenant: t}, err
}

// named says which field of a request an error is about.
func named(field string, err error) error {
	return job.Errorf(job.KindOf(err), "%s: %v", field, err)
}

// Tenants goes through the tenants that the caller may know of and whose names come after one,
// by name: as they are now, however long that takes.
func (s *Session) Tenants(after string) (iter.Seq[directory.Tenant], error) {
	own, err := s.principal.CheckAdmin("ListTenants", "", "")
	if err != nil {
		return nil, err
	}
	if err := s.host.Known(); err != nil {
		return nil, err
	}
	if s.principal.Has(tenant.Operator) {
		return s.host.Directory().Tenants(after), nil
	}
	t, err := s.host.Directory().Tenant(own)
	if err != nil || own <= after {
		return none[directory.Tenant], nil //nolint:nilerr // it is just being taken away: then there is none
	}
	return slices.Values([]directory.Tenant{t}), nil
}

func none[T any](func(T) bool) {}

// stored returns a tenant of the catalog for a change of its own record.
func (s *Session) stored(ctx context.Context, call, name string, version uint64) (catalog.Tenant, *catalog.Catalog, error) {
	var none catalog.Tenant
	if err := s.principal.Check(call, ""); err != nil {
		return none, nil, err
	}
	t, err := s.host.Directory().Tenant(name)
	if err != nil {
		if err := s.host.Lookup(ctx, catalog.Key("tenant", name)); err != nil {
			return none, nil, err
		}
		if t, err = s.host.Directory().Tenant(name); err != nil {
			return none, nil, err
		}
	}
	if t.Declared {
		return none, nil, declared("tenant", name)
	}
	c, err := s.host.Catalog(ctx)
	if err != nil {
		return none, nil, err
	}
	return t.Tenant, c, checkVersion(version, t.Shown())
}

// UpdateTenant gives a tenant the limits that change makes of those it has, and
// returns both.
func (s *Session) UpdateTenant(ctx context.Context, name string, version uint64, change func(*config.Limits) error) (before, after directory.Tenant, err error) {
	t, c, err := s.stored(ctx, "UpdateTenant", name, version)
	if err != nil {
		return before, after, err
	}
	if !t.Deleted.IsZero() {
		return before, after, job.Errorf(job.Precondition, "the tenant %q was deleted", name)
	}
	before.Tenant = t
	if err := change(&t.Limits); err != nil {
		return before, after, err
	}
	if err := checkLimits(t.Limits, false); err != nil {
		return before, after, err
	}
	after.Tenant, err = c.UpdateTenant(ctx, t)
	return before, after, err
}

// DeleteTenant lets nobody in for a tenant any more and serves none of its boards.
// Its jobs are kept, and its name with them, until it is deleted with purge.
func (s *Session) DeleteTenant(ctx context.Context, name string, version uint64, purge bool) error {
	t, c, err := s.stored(ctx, "DeleteTenant", name, version)
	if err != nil {
		return err
	}
	if t.Deleted.IsZero() {
		if err := still(c, name); err != nil {
			return err
		}
		t.Deleted = time.Now().UTC()
		if t, err = c.UpdateTenant(ctx, t); err != nil {
			return err
		}
	} else if !purge {
		return job.Errorf(job.NotFound, "the tenant %q was deleted already; its jobs are kept until it is deleted with purge", name)
	}
	view := c.View()
	for _, token := range catalog.Of(view.Tokens, name) {
		if err := gone(c.RemoveToken(ctx, token)); err != nil {
			return err
		}
	}
	if !purge {
		return nil
	}
	if err := s.purgeBoards(ctx, c, catalog.Of(view.Boards, name)); err != nil {
		return err
	}
	left, err := c.Left(ctx, name, "") // of boards that were deleted before
	if err != nil {
		return err
	}
	if err := s.purgeLeft(ctx, c, left); err != nil {
		return err
	}
	for _, d := range catalog.Of(view.Deployments, name) {
		if err := c.RemoveDeployment(ctx, d); err != nil {
			return err
		}
	}
	for _, p := range catalog.Of(view.Policies, name) {
		if err := gone(c.RemovePolicy(ctx, p)); err != nil {
			return err
		}
	}
	for _, w := range catalog.Of(view.Webhooks, name) {
		if err := gone(c.RemoveWebhook(ctx, w)); err != nil {
			return err
		}
	}
	return gone(c.RemoveTenant(ctx, t))
}

// still refuses to delete a tenant while a board of it moves: nobody would end the move.
func still(c *catalog.Catalog, of string) error {
	for _, b := range catalog.Of(c.View().Boards, of) {
		if b.Move.Active() {
			return job.Errorf(job.Precondition, "the board %q is moving to another backend: wait for that, or give it up (boardd board move --abandon)", b.Name)
		}
	}
	return nil
}

// purgeBoards takes boards away with all that they have, and have left in other stores. Those in a
// store that only another server has stay, and the error names one and that server.
func (s *Session) purgeBoards(ctx context.Context, c *catalog.Catalog, boards []catalog.Board) error {
	var lie []config.Board
	var here []catalog.Board
	var elsewhere error
	for i := range boards {
		b, err := s.purgeable(ctx, boards[i])
		if err == nil {
			err = s.host.Reaches(b.Board)
		}
		if err != nil {
			elsewhere = err
			continue
		}
		if other, moves := beside(&b); moves {
			lie = append(lie, other)
		}
		here, lie = append(here, b), append(lie, b.Board)
	}
	if err := s.host.Purge(ctx, lie...); err != nil {
		return err
	}
	for _, b := range here {
		if err := gone(c.RemoveBoard(ctx, b)); err != nil {
			return err
		}
	}
	return elsewhere
}

// purgeable returns a board without what it has left in the store from which it moved.
func (s *Session) purgeable(ctx context.Context, b catalog.Board) (catalog.Board, error) {
	if b.Move != nil && b.Move.State == catalog.Moved {
		return s.host.DropLeft(ctx, b)
	}
	return b, nil
}

// beside returns where else a board lies that moves: that was begun as its tenant was deleted, and
// goes on no more.
func beside(b *catalog.Board) (other config.Board, moves bool) {
	if !b.Move.Active() {
		return other, false
	}
	at := b.Move.To
	if at.Backend == b.Backend {
		at = b.Move.From
	}
	other = b.Board
	other.Backend, other.Settings, other.Store = at.Backend, at.Settings, at.Store
	return other, true
}

// gone turns NotFound into success: somebody else has removed it already.
func gone(err error) error {
	if job.KindOf(err) == job.NotFound {
		return nil
	}
	return err
}

// ParseLimits reads limits by their names.
func ParseLimits(given map[string]int64) (config.Limits, error) {
	var l config.Limits
	for name, n := range given {
		if n == 0 {
			return l, job.Errorf(job.Invalid, "limits.%s: 0 is no limit: leave it out instead", tenant.Clip(name))
		}
	}
	return l, ChangeLimits(&l, given)
}

// ChangeLimits sets those limits that are given, and lifts those of them that are
// 0.
func ChangeLimits(l *config.Limits, given map[string]int64) error {
	left := len(given)
	var names []string
	for _, limit := range l.Each() {
		names = append(names, limit.Name)
		if n, ok := given[limit.Name]; ok {
			*limit.Value = n
			left--
		}
	}
	if left == 0 {
		return nil
	}
	for name := range given {
		if !slices.Contains(names, name) {
			return job.Errorf(job.Invalid, "limits: there is no limit %q; there are %s", tenant.Clip(name), strings.Join(names, ", "))
		}
	}
	return nil
}

// TenantUse returns what a tenant uses now, by the names of its limits, as far as
// that is counted on this host. Who may list tenants may see it.
func (s *Session) TenantUse(ctx context.Context, of string) (map[string]int64, error) {
	t, err := s.about("ListTenants", of, "")
	if err != nil {
		return nil, err
	}
	return s.host.Use(ctx, t.Name), nil
}
