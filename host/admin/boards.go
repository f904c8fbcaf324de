package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"reflect"
	"slices"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

// CreateBoard makes a board. Without settings for the driver, these are made of
// the tenant's and the board's name; only an operator chooses them.
func (s *Session) CreateBoard(ctx context.Context, of string, b config.Board) (directory.Board, error) {
	t, c, err := s.changing(ctx, "CreateBoard", of, b.Name)
	if err != nil {
		return directory.Board{}, err
	}
	b.Tenant = t.Name
	placed := b.Given()
	if b.Backend == "" && !placed {
		if b.Backend, err = s.host.Placement(t.Name); err != nil {
			return directory.Board{}, err
		}
	}
	if err := s.checkNewBoard(t, b, placed); err != nil {
		return directory.Board{}, err
	}
	if err := s.pinRules(ctx, t, &b); err != nil {
		return directory.Board{}, err
	}
	if t.Limits.Boards > 0 && int64(len(s.host.BoardNames(t.Name))) >= t.Limits.Boards {
		return directory.Board{}, catalog.TooManyBoards(t.Name, int(t.Limits.Boards))
	}
	if err := s.host.Prepare(ctx, &b); err != nil {
		return directory.Board{}, s.placeError(b, err)
	}
	most := 0
	if t.Limits.Boards > 0 { // those of the configuration take their part
		most = max(1, int(t.Limits.Boards)-len(s.host.Directory().DeclaredBoards(t.Name)))
	}
	s.host.ForgetRecording(catalog.At{Tenant: t.Name, Name: b.Name}) // of an earlier one that was deleted while this host was away
	record := catalog.Board{Board: b, Owner: t.ID, Placed: placed || s.principal.Has(tenant.Operator)}
	made, err := c.CreateBoard(ctx, record, most)
	if err == nil && !b.Observe {
		err = c.Clear(ctx, catalog.RemainsOf(b)) // what an earlier board of the name left there is this one's
	}
	return directory.ShownBoard(made), err
}

// TenantBoards goes through those of a tenant's boards that the caller may see and whose names
// come after one, by name, as Tenants does. Only an operator sees where they lie.
func (s *Session) TenantBoards(of, after string) (iter.Seq[directory.Board], error) {
	t, err := s.listing("ListTenantBoards", of, "")
	if err != nil {
		return nil, err
	}
	list := s.host.Directory().TenantBoards(t.Name, after, s.principal.Boards)
	return func(yield func(directory.Board) bool) {
		for b := range list {
			if s.hide(&b); !yield(b) {
				return
			}
		}
	}, nil
}

// hide removes from a board what only an operator may see.
func (s *Session) hide(b *directory.Board) {
	if !s.principal.Has(tenant.Operator) {
		b.Settings = nil
	}
}

// boardForChange returns a board of the catalog for a change.
func (s *Session) boardForChange(ctx context.Context, call, of, name string, version uint64) (catalog.Board, *catalog.Catalog, error) {
	var none catalog.Board
	t, c, err := s.changing(ctx, call, of, name)
	if err != nil {
		return none, nil, err
	}
	if s.host.Directory().DeclaresBoard(t.Name, name) {
		return none, nil, declared("board", name)
	}
	if _, err := s.host.Look(ctx, catalog.At{Tenant: t.Name, Name: name}); err != nil { // it may have been made elsewhere a moment ago
		return none, nil, err
	}
	view := c.View()
	b, ok := view.Boards.Get(catalog.At{Tenant: t.Name, Name: name})
	if !ok || !view.Belongs(t.Name, b.Owner, t.Declared) {
		return none, nil, host.NoBoard(tenant.Clip(name))
	}
	return b, c, checkVersion(version, b.Shown())
}

// UpdateBoard gives a board the settings that change makes of those it has, and
// returns both. Its backend and its place stay.
func (s *Session) UpdateBoard(ctx context.Context, of, name string, version uint64, change func(*config.Board) error) (before, after directory.Board, err error) {
	present, c, err := s.boardForChange(ctx, "UpdateBoard", of, name, version)
	if err != nil {
		return before, after, err
	}
	before = directory.ShownBoard(present)
	present.Board, err = s.changedBoard(ctx, present.Board, change)
	if err != nil {
		return before, after, err
	}
	changed, err := c.UpdateBoard(ctx, present)
	after = directory.ShownBoard(changed)
	s.hide(&before)
	s.hide(&after)
	return before, after, err
}

// changedBoard returns what change makes of a board's settings, or why that can't
// be.
func (s *Session) changedBoard(ctx context.Context, present config.Board, change func(*config.Board) error) (config.Board, error) {
	b := present
	b.Eligibility = slices.Clone(present.Eligibility) // the catalog's are read by others
	if present.Ordering != nil {
		ordering := *present.Ordering
		b.Ordering = &ordering
	}
	if err := change(&b); err != nil {
		return b, err
	}
	if b.Backend != "" && b.Backend != present.Backend {
		return b, job.Errorf(job.Invalid, "board.backend: the board is on %q and moves by MoveBoard alone (boardd board move)", present.Backend)
	}
	if b.Given() && !sameJSON(b.Settings, present.Settings) {
		return b, job.Errorf(job.Invalid, "board.config: a board cannot move to another place: make another board")
	}
	if b.Observe != present.Observe {
		return b, job.Errorf(job.Invalid, "board.mode: it cannot be changed: make another board")
	}
	b.Tenant, b.Backend, b.Settings = present.Tenant, present.Backend, present.Settings
	if err := checkBoard(b); err != nil {
		return b, err
	}
	if reflect.DeepEqual(b.Eligibility, present.Eligibility) && reflect.DeepEqual(b.Ordering, present.Ordering) {
		return b, nil // they were settled when they were given
	}
	t, err := s.host.Directory().Tenant(present.Tenant)
	if err != nil {
		return b, err
	}
	return b, s.pinRules(ctx, t, &b)
}

func sameJSON(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	first, err1 := json.Marshal(x)
	second, err2 := json.Marshal(y)
	return err1 == nil && err2 == nil && bytes.Equal(first, second)
}

// DeleteBoard serves a board no more. With purge its jobs are taken away;
// otherwise a board that is made again under the name has them. A board that is gone, with
// jobs that were kept or not purged to the end, can be purged once more.
func (s *Session) DeleteBoard(ctx context.Context, of, name string, version uint64, purge bool) error {
	b, c, err := s.boardForChange(ctx, "DeleteBoard", of, name, version)
	if purge && version == 0 && job.KindOf(err) == job.NotFound {
		return s.purgeRemains(ctx, of, name, err)
	}
	if err != nil {
		return err
	}
	if b.Move.Active() {
		return job.Errorf(job.Precondition, "the board %q is moving to another backend: wait for that, or give it up (boardd board move --abandon)", b.Name)
	}
	at := catalog.At{Tenant: b.Tenant, Name: b.Name}
	if sends := s.host.Directory().Deliveries(at); len(sends) > 0 {
		return job.Errorf(job.Precondition, "the board %q has the deliveries of the webhook %q of the board %q: delete that first", b.Name, sends[0].Name, sends[0].Board)
	}
	if purge {
		if err := s.host.Reaches(b.Board); err != nil { // before nobody knows of the board any more
			return err
		}
	}
	if b.Move != nil && b.Move.State == catalog.Moved { // nobody would know of it any more
		if b, err = s.host.DropLeft(ctx, b); err != nil {
			return err
		}
	}
	remains := catalog.RemainsOf(b.Board)
	if !b.Observe {
		if err := c.Leave(ctx, remains); err != nil {
			return err
		}
	}
	if err := c.RemoveBoard(ctx, b); err != nil {
		return err
	}
	if err := s.clear(ctx, c, at); err != nil || !purge || b.Observe {
		return err
	}
	if err := s.host.Purge(ctx, b.Board); err != nil {
		return err
	}
	return c.Clear(ctx, remains)
}

// clear takes away what the catalog has of a board that is gone: a later one of its name asks
// what it is given itself, and nobody is told of it.
func (s *Session) clear(ctx context.Context, c *catalog.Catalog, at catalog.At) error {
	for _, w := range c.View().WebhooksOf(at.Tenant, at.Name) {
		if err := gone(c.RemoveWebhook(ctx, w)); err != nil {
			return err
		}
	}
	if d, ok := c.View().Deployments.Get(at); ok {
		return c.RemoveDeployment(ctx, d)
	}
	return nil
}

// purgeRemains takes away what a board has left that is gone; none is the error where it left
// nothing.
func (s *Session) purgeRemains(ctx context.Context, of, name string, none error) error {
	t, c, err := s.changing(ctx, "DeleteBoard", of, name)
	if err != nil {
		return err
	}
	left, err := c.Left(ctx, t.Name, name)
	if err != nil {
		return err
	}
	if len(left) == 0 {
		return none
	}
	if err := s.clear(ctx, c, catalog.At{Tenant: t.Name, Name: name}); err != nil {
		return err
	}
	return s.purgeLeft(ctx, c, left)
}

// purgeLeft takes away what deleted boards have left. What lies in a store that only another server
// has stays, and the error names that server.
func (s *Session) purgeLeft(ctx context.Context, c *catalog.Catalog, left []catalog.Remains) error {
	var elsewhere error
	for i := range left {
		lie := left[i].Lie()
		if err := s.host.Reaches(lie); err != nil {
			elsewhere = err
			continue
		}
		if err := s.host.PurgeLeft(ctx, lie); err != nil {
			return err
		}
		if err := c.Clear(ctx, left[i]); err != nil {
			return err
		}
	}
	return elsewhere
}
