package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host/api"
	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
)

// adminLists are the lists of administrators that come in pages: what a request needs besides,
// the field of the answer, and what names an entry.
var adminLists = []struct{ call, about, field, key string }{
	{"ListTenants", ``, "tenants", "name"},
	{"ListTokens", ``, "tokens", "name"},
	{"ListTenantBoards", ``, "boards", "name"},
	{"ListPlaces", `"name":"store",`, "places", "place"},
}

// page asks for a page of a list, and returns the names of its entries and the next one's token.
func (s *server) page(t testing.TB, secret string, list int, size int, token string) (names []string, next string) {
	t.Helper()
	l := adminLists[list]
	var answer map[string]json.RawMessage
	s.mustAdmin(t, secret, l.call, fmt.Sprintf(`{%s"pageSize":%d,"pageToken":%q}`, l.about, size, token), &answer)
	var entries []map[string]any
	if raw, ok := answer[l.field]; ok {
		if err := json.Unmarshal(raw, &entries); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range entries {
		names = append(names, e[l.key].(string))
	}
	if raw, ok := answer["nextPageToken"]; ok {
		if err := json.Unmarshal(raw, &next); err != nil {
			t.Fatal(err)
		}
	}
	return names, next
}

// pages goes through all pages of a list.
func (s *server) pages(t testing.TB, secret string, list int, size int) (names []string) {
	t.Helper()
	for token := ""; ; {
		page, next := s.page(t, secret, list, size, token)
		if len(page) > size {
			t.Errorf("%s: a page of %d entries, want at most %d", adminLists[list].call, len(page), size)
		}
		if next != "" && len(page) != size {
			t.Errorf("%s: a page of %d entries before the last one, want %d", adminLists[list].call, len(page), size)
		}
		names = append(names, page...)
		if token = next; token == "" {
			return names
		}
	}
}

// listed is a server with entries in all lists, of the configuration and of the catalog, some of
// which have names between those of others.
func listed(t *testing.T) *server {
	t.Helper()
	s := serveWith(t, hosted(t), quiet())
	for _, name := range []string{"a", "b", "c", "d", "zz"} {
		s.mustAdmin(t, operatorSecret, "CreateTenant", fmt.Sprintf(`{"name":%q}`, name), &struct{}{})
		s.mustAdmin(t, operatorSecret, "CreateToken", fmt.Sprintf(`{"name":%q,"roles":["viewer"]}`, name), &struct{}{})
		s.mustAdmin(t, operatorSecret, "CreateBoard", fmt.Sprintf(`{"board":{"name":%q,"backend":"store"}}`, name), &struct{}{})
	}
	waitFor(t, func() bool { // each board takes its place when it is opened
		places, _ := s.page(t, operatorSecret, 3, 0, "")
		return len(places) == 10
	})
	return s
}

// TestAdminListsInPages compares the pages of each list with the list as one.
func TestAdminListsInPages(t *testing.T) {
	t.Parallel()
	s := listed(t)
	for i, l := range adminLists {
		whole, next := s.page(t, operatorSecret, i, 0, "")
		if next != "" || len(whole) < 7 || !slices.IsSorted(whole) {
			t.Errorf("%s: as one it is %v, and the next page %q", l.call, whole, next)
		}
		for _, size := range []int{1, 2, 3, len(whole) - 1, len(whole), len(whole) + 1, api.MaxListPage} {
			got := s.pages(t, operatorSecret, i, size)
			if l.call == "ListPlaces" { // whose pages have the store's order
				slices.Sort(got)
			}
			if !slices.Equal(got, whole) {
				t.Errorf("%s in pages of %d: %v, want %v", l.call, size, got, whole)
			}
		}
		if page, next := s.page(t, operatorSecret, i, api.MaxListPage+1, ""); len(page) != len(whole) || next != "" {
			t.Errorf("%s: a page of more than there may be: %v, %q", l.call, page, next)
		}
	}
	// The token of an entry that is gone is a place in the list all the same.
	_, next := s.page(t, operatorSecret, 0, 2, "")
	s.mustAdmin(t, operatorSecret, "DeleteTenant", fmt.Sprintf(`{"name":%q,"purge":true}`, "a"), &struct{}{})
	if page, _ := s.page(t, operatorSecret, 0, 2, next); len(page) == 0 || page[0] == "a" || page[0] == next {
		t.Errorf("after %q, of which something is gone: %v", next, page)
	}
}

// TestAdminListsForWhom: everybody pages through what is shown to him, and no more.
func TestAdminListsForWhom(t *testing.T) {
	t.Parallel()
	s := listed(t)
	for _, c := range []struct {
		who    string
		secret string
		list   int
		want   []string
	}{
		{"a tenant's administrator", acmeSecret, 0, []string{"acme"}},
		{"a tenant's administrator", acmeSecret, 1, []string{"acme"}},
		{"a tenant's administrator", acmeSecret, 2, []string{"default", "secrets"}},
		{"one bound to a board", boundSecret, 2, []string{"other"}},
	} {
		if got := s.pages(t, c.secret, c.list, 1); !slices.Equal(got, c.want) {
			t.Errorf("%s of %s: %v, want %v", adminLists[c.list].call, c.who, got, c.want)
		}
		last := c.want[len(c.want)-1]
		if page, next := s.page(t, c.secret, c.list, 1, last); len(page) > 0 || next != "" {
			t.Errorf("%s of %s after the last one: %v, %q", adminLists[c.list].call, c.who, page, next)
		}
	}
}

// TestAdminListsRefused asks for pages that cannot be.
func TestAdminListsRefused(t *testing.T) {
	t.Parallel()
	s := serveWith(t, hosted(t), quiet())
	testserver.Eventually(t, "the server has read its catalog", func() bool {
		status, _ := s.admin(t, operatorSecret, "ListTenants", "{}")
		return status == http.StatusOK
	})
	for i, l := range adminLists {
		for _, c := range []struct{ secret, body, want string }{
			{operatorSecret, `"pageSize":-1`, "pageSize: want 1 to 1000, or 0 for all " + l.field + ", got -1"},
			{operatorSecret, `"pageSize":"many"`, "pageSize"},
			{viewerSecret, `"pageSize":-1`, "permission_denied"},
		} {
			status, answer := s.admin(t, c.secret, l.call, "{"+l.about+c.body+"}")
			if status == http.StatusOK || !strings.Contains(answer, c.want) {
				t.Errorf("%s {%s}: %d %s; want %s", l.call, c.body, status, answer, c.want)
			}
		}
		for _, token := range []string{"~", strings.Repeat("~", 4000)} {
			status, answer := s.admin(t, operatorSecret, l.call, fmt.Sprintf(`{%s"pageToken":%q}`, l.about, token))
			if wrong := strings.Contains(answer, "pageToken: want one that a page of these places gave"); wrong != (i == 3) || status == http.StatusOK == wrong {
				t.Errorf("%s after %.20q: %d %s", l.call, token, status, answer)
			}
		}
	}
}

// TestAdminListsBesideWriters pages through the lists while entries come and go between the
// others: each of these is listed once.
func TestAdminListsBesideWriters(t *testing.T) {
	t.Parallel()
	s := listed(t)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var rounds [3]atomic.Int64
	for w, calls := range [][2][2]string{
		{{"CreateTenant", `{"name":%q}`}, {"DeleteTenant", `{"name":%q,"purge":true}`}},
		{{"CreateToken", `{"name":%q,"roles":["viewer"]}`}, {"RevokeToken", `{"name":%q}`}},
		{{"CreateBoard", `{"board":{"name":%q,"backend":"store"}}`}, {"DeleteBoard", `{"name":%q,"purge":true}`}},
	} {
		writing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				for _, c := range calls {
					name := fmt.Sprintf("%c-churn", "abcz"[i%4])
					if status, answer := s.admin(t, operatorSecret, c[0], fmt.Sprintf(c[1], name)); status != http.StatusOK {
						t.Errorf("%s %s: %d %s", c[0], name, status, answer)
					}
				}
				rounds[w].Add(1)
			}
		})
	}
	wrote := func(n int64) bool { return rounds[0].Load() >= n && rounds[1].Load() >= n && rounds[2].Load() >= n }
	for again := true; again; again = !wrote(4) && !t.Failed() {
		for i, l := range adminLists {
			whole, _ := s.page(t, operatorSecret, i, 0, "")
			want := staying(whole)
			for size := 1; size <= 3; size++ {
				var got []string
				page, next := s.page(t, operatorSecret, i, size, "")
				for got = page; next != ""; got = append(got, page...) {
					page, next = s.page(t, operatorSecret, i, size, next)
				}
				if got = staying(got); !slices.Equal(got, want) {
					t.Errorf("%s in pages of %d beside writers: %v, want %v", l.call, size, got, want)
				}
			}
		}
	}
	close(stop)
	writing.Wait()
}

// staying returns, sorted, those names that no writer makes or takes away.
func staying(names []string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(n string) bool { return strings.Contains(n, "-churn") })
}

// TestAdminListsAreRead: an answer as large as may be goes into what a client of gRPC takes.
func TestAdminListsAreRead(t *testing.T) {
	t.Parallel()
	const grpcTakes = 4 << 20
	token := strings.Repeat("x", 63)
	around := proto.Size(&boarddv1.ListTenantBoardsResponse{NextPageToken: token})
	if n := api.MaxListBytes + around; n > grpcTakes {
		t.Errorf("an answer may have %d bytes, and clients take %d", n, grpcTakes)
	}
}
