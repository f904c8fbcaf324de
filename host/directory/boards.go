package directory

import (
	"iter"
	"slices"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
)

// Board is a board of the configuration or of the catalog.
type Board struct {
	config.Board

	Version  uint64 // of the catalog; 0 if the board is declared
	Made     time.Time
	Declared bool
}

// ShownBoard returns a board of the catalog as it is shown.
func ShownBoard(b catalog.Board) Board {
	return Board{Board: b.Board, Version: b.Shown(), Made: b.Made}
}

// DeclaredBoards returns a tenant's boards in the configuration.
func (d Directory) DeclaredBoards(of string) []config.Board {
	var list []config.Board
	for _, b := range d.Settings.Boards {
		if b.Tenant = TenantOf(b); b.Tenant == of {
			list = append(list, b)
		}
	}
	return list
}

// DeclaresBoard reports whether the configuration has a board.
func (d Directory) DeclaresBoard(of, name string) bool {
	return slices.ContainsFunc(d.Settings.Boards, func(b config.Board) bool { return b.Name == name && TenantOf(b) == of })
}

// StoredBoard returns a board of the catalog, if it counts.
func (d Directory) StoredBoard(of, name string) (catalog.Board, bool) {
	b, ok := d.View.Boards.Get(catalog.At{Tenant: of, Name: name})
	return b, ok && d.belongs(of, b.Owner)
}

// TenantBoards goes through a tenant's boards and their settings, by name: those whose names
// come after one, and of these, unless only is empty, those that it names.
func (d Directory) TenantBoards(of, after string, only []string) iter.Seq[Board] {
	declares := d.Declares(of)
	var declared []Board
	for _, b := range d.DeclaredBoards(of) {
		if len(only) == 0 || slices.Contains(only, b.Name) {
			declared = append(declared, Board{Board: b, Declared: true})
		}
	}
	stored := catalog.After(d.View.Boards, of, after)
	if len(only) > 0 {
		stored = d.storedBoards(of, after, only)
	}
	return merged(declared, after, func(b Board) string { return b.Name }, func(yield func(Board) bool) {
		for b := range stored {
			if d.View.Belongs(of, b.Owner, declares) && !yield(ShownBoard(b)) {
				return
			}
		}
	})
}

// storedBoards goes through those boards of the catalog that are named and come after a name.
func (d Directory) storedBoards(of, after string, names []string) iter.Seq[catalog.Board] {
	return func(yield func(catalog.Board) bool) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			b, ok := d.View.Boards.Get(catalog.At{Tenant: of, Name: name})
			if ok && name > after && !yield(b) {
				return
			}
		}
	}
}

// Boards returns the boards that are to be served: those of the configuration, and
// those of the catalog whose backend is open to their tenant.
func (d Directory) Boards() map[catalog.At]config.Board {
	boards := map[catalog.At]config.Board{}
	for _, b := range d.Settings.Boards {
		b.Tenant = TenantOf(b)
		boards[At(b)] = b
	}
	for at, b := range d.View.Boards.All() {
		if _, declared := boards[at]; declared {
			continue
		}
		if served, ok := d.servedOfCatalog(b); ok {
			boards[at] = served
		}
	}
	return boards
}

// Board returns one of Boards, if it is among them.
func (d Directory) Board(at catalog.At) (config.Board, bool) {
	for _, b := range d.Settings.Boards {
		if At(b) == at {
			b.Tenant = at.Tenant
			return b, true
		}
	}
	b, ok := d.View.Boards.Get(at)
	if !ok {
		return config.Board{}, false
	}
	return d.servedOfCatalog(b)
}

// servedOfCatalog returns how a board of the catalog is to be served, if it is.
func (d Directory) servedOfCatalog(b catalog.Board) (config.Board, bool) {
	if !d.belongs(b.Tenant, b.Owner) || !b.Placed && !d.Grants(b.Backend, b.Tenant) {
		return config.Board{}, false
	}
	return d.withModules(b.Board), true
}

// withModules notes which files a board's policies of the configuration are, so
// that another file is another rule.
func (d Directory) withModules(b config.Board) config.Board {
	name := func(r config.Rule) config.Rule {
		for _, p := range d.Settings.Policies {
			if p.Name == r.Policy && r.Module == "" {
				r.Module = p.Digest()
			}
		}
		return r
	}
	b.Eligibility = slices.Clone(b.Eligibility)
	for i := range b.Eligibility {
		b.Eligibility[i] = name(b.Eligibility[i])
	}
	if b.Ordering != nil {
		r := name(*b.Ordering)
		b.Ordering = &r
	}
	return b
}

// Deployment returns what a board was given through the API.
func (d Directory) Deployment(b config.Board) catalog.Deployment {
	found, ok := d.View.Deployments.Get(At(b))
	if !ok || !d.belongs(found.Tenant, found.Owner) {
		return catalog.Deployment{}
	}
	return found
}
