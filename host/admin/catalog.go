package admin

import (
	"context"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/sdk/job"
)

// CatalogState is what a host knows of its catalog.
type CatalogState struct {
	Identity catalog.Identity
	Records  int
	Doubt    *catalog.Doubt // nil: the store has what is known
}

// whole returns the catalog for a call that is about all of it.
func (s *Session) whole(ctx context.Context, call string) (*catalog.Catalog, error) {
	if _, err := s.principal.CheckAdmin(call, "", ""); err != nil {
		return nil, err
	}
	return s.host.Catalog(ctx)
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
	if accept && len(list) == 0 {
		return 0, 0, job.Errorf(job.Invalid, "records: want at least one with accept, got none: AcceptCatalog takes what the store has")
	}
	if written, kept, err = c.Import(ctx, list, replace); err == nil && accept {
		err = c.Accept(ctx)
	}
	return written, kept, err
}
