package api

import (
	"context"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/directory"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

func toToken(t directory.Token) *boarddv1.Token {
	answer := &boarddv1.Token{
		Tenant: t.Tenant, Name: t.Name, Boards: t.Boards, Declared: t.Declared,
		ExpiresAt: toTime(t.Expires), CreatedAt: toTime(t.Made),
	}
	for _, role := range t.Roles {
		answer.Roles = append(answer.Roles, string(role))
	}
	return answer
}

// CreateToken makes a token, whose secret is in this answer and nowhere else.
func (a *adminService) CreateToken(ctx context.Context, r *connect.Request[boarddv1.CreateTokenRequest]) (*connect.Response[boarddv1.CreateTokenResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	n := admin.NewToken{Tenant: r.Msg.GetTenant(), Name: r.Msg.GetName(), Roles: r.Msg.GetRoles(), Boards: r.Msg.GetBoards(), Outlive: r.Msg.GetOutlive()}
	if n.Expires, err = fromTime("expiresAt", r.Msg.GetExpiresAt(), r.Msg.ExpiresAt != nil); err != nil {
		return nil, session.Unless("CreateToken", err)
	}
	t, secret, err := session.CreateToken(ctx, n)
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.CreateTokenResponse{Token: toToken(t), Secret: secret})
}

// ListTokens gives a tenant's tokens, without their secrets.
func (a *adminService) ListTokens(ctx context.Context, r *connect.Request[boarddv1.ListTokensRequest]) (*connect.Response[boarddv1.ListTokensResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	part, err := partOf("tokens", r.Msg.GetPageSize())
	if err != nil {
		return nil, session.Unless("ListTokens", err)
	}
	list, err := session.Tokens(r.Msg.GetTenant(), r.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	entries, next, err := entriesOf(part, list, toToken, func(t directory.Token) string { return t.Name })
	if err != nil {
		return nil, err
	}
	return answer(&boarddv1.ListTokensResponse{Tokens: entries, NextPageToken: next})
}

// RevokeToken ends a token, and what goes on in its name.
func (a *adminService) RevokeToken(ctx context.Context, r *connect.Request[boarddv1.RevokeTokenRequest]) (*connect.Response[boarddv1.RevokeTokenResponse], error) {
	session, err := a.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := session.RevokeToken(ctx, r.Msg.GetTenant(), r.Msg.GetName()); err != nil {
		return nil, err
	}
	return answer(&boarddv1.RevokeTokenResponse{})
}
