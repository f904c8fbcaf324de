package host

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// BoardRecord is a board of the configuration or of the catalog.
type BoardRecord struct {
	config.Board

	Version  uint64 // of the catalog; 0 if the board is declared
	Made     time.Time
	Declared bool
}

// CreateBoard makes a board. Without settings for the driver, these are made of
// the tenant's and the board's name; only an operator chooses them.
func (s *Session) CreateBoard(ctx context.Context, of string, b config.Board) (BoardRecord, error) {
	t, c, err := s.changing(ctx, "CreateBoard", of, b.Name)
	if err != nil {
		return BoardRecord{}, err
	}
	b.Tenant = t.Name
	placed := given(b.Settings)
	if err := s.checkNewBoard(t, b, placed); err != nil {
		return BoardRecord{}, err
	}
	if err := s.settleRules(ctx, t, &b); err != nil {
		return BoardRecord{}, err
	}
	if t.Limits.Boards > 0 && int64(len(s.host.registry.names(t.Name))) >= t.Limits.Boards {
		return BoardRecord{}, catalog.TooManyBoards(t.Name, int(t.Limits.Boards))
	}
	if err := s.host.prepare(ctx, &b); err != nil {
		return BoardRecord{}, s.placeError(b, err)
	}
	most := 0
	if t.Limits.Boards > 0 { // those of the configuration take their part
		most = max(1, int(t.Limits.Boards)-len(s.host.declaredBoards(t.Name)))
	}
	s.host.recordings.forget(At{t.Name, b.Name}) // of an earlier one that was deleted while this host was away
	record := catalog.Board{Board: b, Owner: t.ID, Placed: placed || s.principal.Has(tenant.Operator)}
	made, err := c.CreateBoard(ctx, record, most)
	return storedBoard(made), err
}

// prepare asks the backend's driver whether it takes the board's settings, makes
// them where they are missing, and occupies the place.
func (h *Host) prepare(ctx context.Context, b *config.Board) error {
	on, r, err := h.runningBackend(ctx, b.Backend)
	if err != nil {
		return err
	}
	if !given(b.Settings) {
		if b.Settings, err = catalog.MakeSettings(r.info.Board, b.Tenant, b.Name); err != nil {
			return err
		}
	}
	if problems := r.info.Board.Check(b.Settings); len(problems) > 0 {
		return job.Errorf(job.Invalid, "board.config.%v", problems[0])
	}
	compact := &bytes.Buffer{}
	if err := json.Compact(compact, b.Settings); err != nil {
		return job.Errorf(job.Invalid, "board.config: %v", err)
	}
	b.Settings = compact.Bytes()
	if b.Observe {
		return nil
	}
	return on.place(ctx, h, r.driver.Documents(), *b)
}

func storedBoard(b catalog.Board) BoardRecord {
	return BoardRecord{Board: b.Board, Version: b.Shown(), Made: b.Made}
}

// declaredBoards returns a tenant's boards in the configuration.
func (h *Host) declaredBoards(of string) []config.Board {
	var list []config.Board
	for _, b := range h.Settings().Boards {
		if b.Tenant = tenantOf(b); b.Tenant == of {
			list = append(list, b)
		}
	}
	return list
}

// TenantBoards returns a tenant's boards and their settings, by name. Only an
// operator sees where they lie.
func (s *Session) TenantBoards(of string) ([]BoardRecord, error) {
	t, err := s.about("ListTenantBoards", of, "")
	if err != nil {
		return nil, err
	}
	var list []BoardRecord
	names := map[string]bool{}
	for _, b := range s.host.declaredBoards(t.Name) {
		names[b.Name] = true
		list = append(list, BoardRecord{Board: b, Declared: true})
	}
	view := s.host.catalog.view()
	for _, b := range catalog.Of(view.Boards, t.Name) {
		if !names[b.Name] && view.Belongs(t.Name, b.Owner, t.Declared) {
			list = append(list, storedBoard(b))
		}
	}
	list = slices.DeleteFunc(list, func(b BoardRecord) bool { return !s.principal.Sees(b.Name) })
	for i := range list {
		s.hide(&list[i])
	}
	slices.SortFunc(list, func(a, b BoardRecord) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// hide takes out of a board what is the operator's business.
func (s *Session) hide(b *BoardRecord) {
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
	if slices.ContainsFunc(s.host.declaredBoards(t.Name), func(d config.Board) bool { return d.Name == name }) {
		return none, nil, declared("board", name)
	}
	if _, err := s.host.look(ctx, At{t.Name, name}); err != nil { // it may have been made elsewhere a moment ago
		return none, nil, err
	}
	view := c.View()
	b, ok := view.Boards[catalog.At{Tenant: t.Name, Name: name}]
	if !ok || !view.Belongs(t.Name, b.Owner, t.Declared) {
		return none, nil, noBoard(tenant.Clip(name))
	}
	return b, c, checkVersion(version, b.Shown())
}

// UpdateBoard gives a board the settings that change makes of those it has, and
// returns both. Its backend and its place stay.
func (s *Session) UpdateBoard(ctx context.Context, of, name string, version uint64, change func(*config.Board) error) (before, after BoardRecord, err error) {
	present, c, err := s.boardForChange(ctx, "UpdateBoard", of, name, version)
	if err != nil {
		return before, after, err
	}
	before = storedBoard(present)
	present.Board, err = s.changedBoard(ctx, present.Board, change)
	if err != nil {
		return before, after, err
	}
	changed, err := c.UpdateBoard(ctx, present)
	after = storedBoard(changed)
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
		return b, job.Errorf(job.Invalid, "board.backend: the board is on %q and cannot move: make another board", present.Backend)
	}
	if given(b.Settings) && !sameJSON(b.Settings, present.Settings) {
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
	t, err := s.host.known(present.Tenant)
	if err != nil {
		return b, err
	}
	return b, s.settleRules(ctx, t, &b)
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
// otherwise a board that is made again under the name has them.
func (s *Session) DeleteBoard(ctx context.Context, of, name string, version uint64, purge bool) error {
	b, c, err := s.boardForChange(ctx, "DeleteBoard", of, name, version)
	if err != nil {
		return err
	}
	if err := c.RemoveBoard(ctx, b); err != nil {
		return err
	}
	if d, ok := c.View().Deployments[catalog.At{Tenant: b.Tenant, Name: b.Name}]; ok {
		if err := c.RemoveDeployment(ctx, d); err != nil { // a later board of the name asks what it is given itself
			return err
		}
	}
	if !purge || b.Observe {
		return nil
	}
	return s.host.purgeBoard(ctx, b.Board)
}

// purgeAfter is how long other hosts may take to see that a board is gone, before
// its jobs are.
const purgeAfter = time.Second

// purgeBoard takes away what a board has in its store, once it is served no more.
func (h *Host) purgeBoard(ctx context.Context, b config.Board) error {
	if b.Observe {
		return nil
	}
	on, r, err := h.runningBackend(ctx, b.Backend)
	if err != nil {
		return err
	}
	if served := h.registry.board(b.Tenant, b.Name); served != nil { // of a tenant that is just being deleted
		h.registry.drop(served)
		served.stop(&Ended{noBoard(b.Name)})
		<-served.done
	}
	if on.present(h, r.driver.Documents()) != nil {
		select {
		case <-time.After(purgeAfter):
		case <-ctx.Done():
			return &job.Error{Kind: job.Interrupted, Err: ctx.Err()}
		}
	}
	key := b.Tenant + "/" + b.Name
	spec := driver.BoardSpec{Name: key, Settings: b.Settings, Window: b.IdempotencyWindow}
	if _, err := r.driver.OpenBoard(ctx, spec); err != nil { // a driver that was restarted may not know it
		return err
	}
	if err := r.driver.DropBoard(ctx, key); err != nil {
		return err
	}
	return on.placesIn(r.driver.Documents()).Vacate(ctx, catalog.LocationOf(b.Settings, key), b.Tenant, b.Name)
}
