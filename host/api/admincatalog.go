package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/catalog"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// GetCatalog says what is known of the catalog, and whether the store has it still.
func (a *adminService) GetCatalog(ctx context.Context, _ *connect.Request[boarddv1.GetCatalogRequest]) (*connect.Response[boarddv1.GetCatalogResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	state, err := session.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	response := &boarddv1.GetCatalogResponse{
		Id: state.Identity.ID, Generation: toInt64(state.Identity.Generation), Records: int64(state.Records),
	}
	if d := state.Doubt; d != nil {
		response.InDoubt, response.Since, response.Problem, response.Names = true, toTime(d.Since), d.String(), d.Names
		response.Missing, response.Older, response.Returned, response.Foreign = int64(d.Missing), int64(d.Older), int64(d.Returned), d.Foreign
	}
	return answer(response)
}

// AcceptCatalog makes what the store has now the catalog.
func (a *adminService) AcceptCatalog(ctx context.Context, _ *connect.Request[boarddv1.AcceptCatalogRequest]) (*connect.Response[boarddv1.AcceptCatalogResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	state, err := session.AcceptCatalog(ctx)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.AcceptCatalogResponse{Generation: toInt64(state.Identity.Generation), Records: int64(state.Records)})
}

// ExportCatalog gives a page of the catalog's records.
func (a *adminService) ExportCatalog(ctx context.Context, r *connect.Request[boarddv1.ExportCatalogRequest]) (*connect.Response[boarddv1.ExportCatalogResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	page, next, missing, err := session.ExportCatalog(ctx, r.Msg.GetAfter())
	if err != nil {
		return nil, err
	}
	response := &boarddv1.ExportCatalogResponse{Next: next, Missing: missing}
	for _, e := range page {
		response.Records = append(response.Records, &boarddv1.CatalogRecord{Name: e.Name, Data: e.Data})
	}
	return answer(response)
}

// ImportCatalog writes records into the catalog's store.
func (a *adminService) ImportCatalog(ctx context.Context, r *connect.Request[boarddv1.ImportCatalogRequest]) (*connect.Response[boarddv1.ImportCatalogResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]catalog.Exported, 0, len(r.Msg.GetRecords()))
	for _, record := range r.Msg.GetRecords() {
		list = append(list, catalog.Exported{Name: record.GetName(), Data: record.GetData()})
	}
	written, kept, err := session.ImportCatalog(ctx, list, r.Msg.GetReplace(), r.Msg.GetAccept())
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ImportCatalogResponse{Written: int64(written), Kept: int64(kept)})
}
