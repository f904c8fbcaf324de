package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// CreateBoard makes a board.
func (a *adminService) CreateBoard(ctx context.Context, r *connect.Request[boarddv1.CreateBoardRequest]) (*connect.Response[boarddv1.CreateBoardResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	b := config.NewBoard(r.Msg.GetBoard().GetName())
	if err := readBoardSettings(r.Msg.GetBoard(), allFields, &b); err != nil {
		return nil, session.Unless("CreateBoard", err)
	}
	made, err := session.CreateBoard(ctx, tenantOf(r.Msg.GetTenant(), r.Msg.GetBoard()), b)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.CreateBoardResponse{Board: toBoardSettings(made)})
}

// tenantOf is the tenant that a request names, in one of two places.
func tenantOf(given string, b *boarddv1.BoardSettings) string {
	if given == "" {
		return b.GetTenant()
	}
	return given
}

// UpdateBoard changes those settings of a board that the request names.
func (a *adminService) UpdateBoard(ctx context.Context, r *connect.Request[boarddv1.UpdateBoardRequest]) (*connect.Response[boarddv1.UpdateBoardResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	settings := r.Msg.GetBoard()
	version, err := fromVersion("version", r.Msg.GetVersion())
	var named mask
	if err == nil {
		named, err = readMask(r.Msg.GetUpdateMask(), boardFieldNames())
	}
	if err == nil {
		scratch := config.NewBoard(settings.GetName()) // what is wrong in itself is wrong for everybody
		err = readBoardSettings(settings, named, &scratch)
	}
	if err != nil {
		return nil, session.Unless("UpdateBoard", err)
	}
	of := tenantOf(r.Msg.GetTenant(), settings)
	before, changed, err := session.UpdateBoard(ctx, of, settings.GetName(), version, func(b *config.Board) error { return readBoardSettings(settings, named, b) })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.UpdateBoardResponse{Board: toBoardSettings(changed), Before: toBoardSettings(before)})
}

// DeleteBoard serves a board no more.
func (a *adminService) DeleteBoard(ctx context.Context, r *connect.Request[boarddv1.DeleteBoardRequest]) (*connect.Response[boarddv1.DeleteBoardResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	version, err := fromVersion("version", r.Msg.GetVersion())
	if err != nil {
		return nil, session.Unless("DeleteBoard", err)
	}
	if err := session.DeleteBoard(ctx, r.Msg.GetTenant(), r.Msg.GetName(), version, r.Msg.GetPurge()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.DeleteBoardResponse{})
}

// ListTenantBoards gives a tenant's boards and their settings.
func (a *adminService) ListTenantBoards(ctx context.Context, r *connect.Request[boarddv1.ListTenantBoardsRequest]) (*connect.Response[boarddv1.ListTenantBoardsResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	part, err := partOf("boards", r.Msg.GetPageSize())
	if err != nil {
		return nil, session.Unless("ListTenantBoards", err)
	}
	list, err := session.TenantBoards(r.Msg.GetTenant(), r.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	entries, next, err := entriesOf(part, list, toBoardSettings, func(b directory.Board) string { return b.Name })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ListTenantBoardsResponse{Boards: entries, NextPageToken: next})
}
