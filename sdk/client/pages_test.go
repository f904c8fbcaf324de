package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/client"
)

// fakeAdmin has lists of the same names, which it gives in pages of two.
type fakeAdmin struct {
	boarddv1connect.UnimplementedAdminServiceHandler

	names []string
	old   func(call int) bool // a server answers that knows no pages
	fails func(call int) error
	calls int
}

func (f *fakeAdmin) page(size int32, token string) (page []string, next string, err error) {
	f.calls++
	if f.fails != nil {
		if err := f.fails(f.calls); err != nil {
			return nil, "", err
		}
	}
	if f.old != nil && f.old(f.calls) {
		return f.names, "", nil
	}
	if size != 1000 {
		return nil, "", connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("pages of %d", size))
	}
	for _, name := range f.names {
		if name > token && len(page) < 2 {
			page = append(page, name)
		}
	}
	if len(page) == 2 && page[1] != f.names[len(f.names)-1] {
		next = page[1]
	}
	return page, next, nil
}

func (f *fakeAdmin) ListTenants(_ context.Context, r *connect.Request[boarddv1.ListTenantsRequest]) (*connect.Response[boarddv1.ListTenantsResponse], error) {
	page, next, err := f.page(r.Msg.PageSize, r.Msg.PageToken)
	answer := &boarddv1.ListTenantsResponse{NextPageToken: next}
	for _, name := range page {
		answer.Tenants = append(answer.Tenants, &boarddv1.Tenant{Name: name})
	}
	return connect.NewResponse(answer), err
}

func (f *fakeAdmin) ListTokens(_ context.Context, r *connect.Request[boarddv1.ListTokensRequest]) (*connect.Response[boarddv1.ListTokensResponse], error) {
	page, next, err := f.page(r.Msg.PageSize, r.Msg.PageToken)
	answer := &boarddv1.ListTokensResponse{NextPageToken: next}
	for _, name := range page {
		answer.Tokens = append(answer.Tokens, &boarddv1.Token{Tenant: r.Msg.Tenant, Name: name})
	}
	return connect.NewResponse(answer), err
}

func (f *fakeAdmin) ListTenantBoards(_ context.Context, r *connect.Request[boarddv1.ListTenantBoardsRequest]) (*connect.Response[boarddv1.ListTenantBoardsResponse], error) {
	page, next, err := f.page(r.Msg.PageSize, r.Msg.PageToken)
	answer := &boarddv1.ListTenantBoardsResponse{NextPageToken: next}
	for _, name := range page {
		answer.Boards = append(answer.Boards, &boarddv1.BoardSettings{Tenant: r.Msg.Tenant, Name: name})
	}
	return connect.NewResponse(answer), err
}

func (f *fakeAdmin) ListPlaces(_ context.Context, r *connect.Request[boarddv1.ListPlacesRequest]) (*connect.Response[boarddv1.ListPlacesResponse], error) {
	page, next, err := f.page(r.Msg.PageSize, r.Msg.PageToken)
	answer := &boarddv1.ListPlacesResponse{NextPageToken: next}
	for _, name := range page {
		answer.Places = append(answer.Places, &boarddv1.Place{Place: name, Board: r.Msg.Name})
	}
	return connect.NewResponse(answer), err
}

// listsOf asks for each list, and returns the names in it with what they are of.
func listsOf(ctx context.Context, a *client.Admin) map[string]func() ([]string, error) {
	return map[string]func() ([]string, error){
		"tenants": func() ([]string, error) {
			list, err := a.ListTenants(ctx)
			return texts(list, func(t *boarddv1.Tenant) string { return "acme/" + t.GetName() }), err
		},
		"tokens": func() ([]string, error) {
			list, err := a.ListTokens(ctx, "acme")
			return texts(list, func(t *boarddv1.Token) string { return t.GetTenant() + "/" + t.GetName() }), err
		},
		"boards": func() ([]string, error) {
			list, err := a.ListBoards(ctx, "acme")
			return texts(list, func(b *boarddv1.BoardSettings) string { return b.GetTenant() + "/" + b.GetName() }), err
		},
		"places": func() ([]string, error) {
			list, err := a.ListPlaces(ctx, "acme")
			return texts(list, func(p *boarddv1.Place) string { return p.GetBoard() + "/" + p.GetPlace() }), err
		},
	}
}

func texts[T any](list []T, text func(T) string) (all []string) {
	for _, one := range list {
		all = append(all, text(one))
	}
	return all
}

// TestAdminPages lists what comes in pages, at servers that have them and at some that do not.
func TestAdminPages(t *testing.T) {
	t.Parallel()
	broken := connect.NewError(connect.CodePermissionDenied, errors.New("not any more"))
	for _, c := range []struct {
		name  string
		admin *fakeAdmin
		calls int
		fails bool
	}{
		{"in pages", &fakeAdmin{}, 3, false},
		{"a server without pages", &fakeAdmin{old: func(int) bool { return true }}, 1, false},
		{"one without pages in place of one with them", &fakeAdmin{old: func(call int) bool { return call > 1 }}, 2, false},
		{"the second page fails", &fakeAdmin{fails: func(call int) error {
			if call == 2 {
				return broken
			}
			return nil
		}}, 2, true},
	} {
		c.admin.names = []string{"a", "b", "c", "d", "e"}
		mux := http.NewServeMux()
		mux.Handle(boarddv1connect.NewAdminServiceHandler(c.admin))
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		found, err := client.New(client.Config{Addr: server.URL, Token: "secret"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(found.Close)
		for what, list := range listsOf(t.Context(), found.Admin()) {
			c.admin.calls = 0
			got, err := list()
			if (err != nil) != c.fails || c.admin.calls != c.calls {
				t.Errorf("%s, %s: %v, after %d calls; want %d", what, c.name, err, c.admin.calls, c.calls)
			}
			if want := []string{"acme/a", "acme/b", "acme/c", "acme/d", "acme/e"}; !c.fails && !slices.Equal(got, want) || c.fails && len(got) > 0 {
				t.Errorf("%s, %s: %v", what, c.name, got)
			}
		}
	}
}
