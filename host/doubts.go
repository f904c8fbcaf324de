package host

import (
	"context"
	"path/filepath"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// CatalogState is what a host knows of its catalog.
type CatalogState struct {
	Identity catalog.Identity
	Records  int
	Doubt    *catalog.Doubt // nil: the store has what is known
}

// catalogMemory is where a host remembers its catalog.
func catalogMemory(dataDir string) string {
	if dataDir == "" {
		return ""
	}
	return filepath.Join(memoryFolder(dataDir), "catalog")
}

// Doubt returns what the matter is with the store's catalog, or nil.
func (h *Host) Doubt() *catalog.Doubt {
	if c := h.catalog.open(); c != nil {
		return c.Doubt()
	}
	return nil
}

// CatalogRecords returns how many records of the catalog this host knows, and how many
// of them the store has lost.
func (h *Host) CatalogRecords() (known, lost int) {
	c := h.catalog.open()
	if c == nil {
		return 0, 0
	}
	known, _ = c.Records()
	switch d := c.Doubt(); {
	case d == nil:
	case d.Foreign:
		lost = known
	default:
		lost = d.Missing + d.Older + d.Returned
	}
	return known, lost
}

// whole returns the catalog for a call that is about all of it.
func (s *Session) whole(ctx context.Context, call string) (*catalog.Catalog, error) {
	if _, err := s.principal.CheckAdmin(call, "", ""); err != nil {
		return nil, err
	}
	return s.host.catalog.forChange(ctx)
}

// Catalog returns what is known of the catalog, and what became of it.
func (s *Session) Catalog(ctx context.Context) (CatalogState, error) {
	c, err := s.whole(ctx, "GetCatalog")
	if err != nil {
		return CatalogState{}, err
	}
	return stateOf(c), nil
}

func stateOf(c *catalog.Catalog) CatalogState {
	state := CatalogState{Doubt: c.Doubt()}
	state.Records, state.Identity = c.Records()
	return state
}

// AcceptCatalog makes what the store has now the catalog, on every server.
func (s *Session) AcceptCatalog(ctx context.Context) (CatalogState, error) {
	c, err := s.whole(ctx, "AcceptCatalog")
	if err != nil {
		return CatalogState{}, err
	}
	if err := c.Accept(ctx); err != nil {
		return CatalogState{}, err
	}
	return stateOf(c), nil
}

// ExportCatalog returns records after a name as they are served, where to go on, and
// the modules that nobody has.
func (s *Session) ExportCatalog(ctx context.Context, after string) (page []catalog.Exported, next string, missing []string, err error) {
	c, err := s.whole(ctx, "ExportCatalog")
	if err != nil {
		return nil, "", nil, err
	}
	return c.Export(ctx, after)
}

// MaxImport is how many records one call of ImportCatalog takes.
const MaxImport = 1000

// ImportCatalog writes records into the store, and with accept makes what it has then
// the catalog.
func (s *Session) ImportCatalog(ctx context.Context, list []catalog.Exported, replace, accept bool) (written, kept int, err error) {
	c, err := s.whole(ctx, "ImportCatalog")
	if err != nil {
		return 0, 0, err
	}
	if len(list) > MaxImport {
		return 0, 0, job.Errorf(job.Invalid, "records: want at most %d, got %d", MaxImport, len(list))
	}
	if written, kept, err = c.Import(ctx, list, replace); err == nil && accept {
		err = c.Accept(ctx)
	}
	return written, kept, err
}

// resettle takes the places of all boards again, after a store has lost something: what
// says whose they are may be gone too.
func (h *Host) resettle() {
	for _, b := range h.registry.allBoards() {
		if b.board.Load() == nil {
			continue // it takes its place when it is opened
		}
		h.registry.leaving.Go(func() {
			ctx, cancel := context.WithTimeout(b.running, openingTime)
			defer cancel()
			if err := b.occupy(ctx, h); err != nil && b.running.Err() == nil {
				b.logger.Warn("the board's place in the store could not be taken again", "error", err)
			}
		})
	}
}

// remembered compares a catalog with what a server that is not running knew of it.
func (d *deployment) remembered(ctx context.Context, name string, docs driver.Documents) error {
	doubt, err := catalog.Compare(ctx, docs, catalogMemory(d.host.Settings().DataDir), d.host.logger)
	if err == nil && doubt != nil {
		d.found(Finding{Backend: name, Finding: driver.Finding{
			Code: "catalog-in-doubt", Severity: driver.Problem, Subject: "catalog", Problem: doubt.String() + "; a server serves what it knows, and changes nothing",
			Mend: "boardd catalog export | boardd catalog import -, or boardd catalog accept",
		}})
	}
	return err
}
