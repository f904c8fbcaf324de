package api

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
)

// TestHowMuchOfAList makes answers of lists at the edges of what goes into one.
func TestHowMuchOfAList(t *testing.T) {
	t.Parallel()
	const third = MaxListBytes / 3
	for _, c := range []struct {
		name          string
		size          int32
		entries, each int // of the list, and how many bytes an entry has
		want, looked  int // how many entries the answer has, and how many were looked at
		refused       string
	}{
		{"a page", 10, 100, 20, 10, 11, ""},
		{"the last page", 10, 10, 20, 10, 10, ""},
		{"a page too large", 5000, 5000, 20, MaxListPage, MaxListPage + 1, ""},
		{"a page of large entries", 10, 100, third, 2, 3, ""},
		{"a page of an entry that is too large", 10, 2, 2 * MaxListBytes, 1, 2, ""},
		{"one entry that is too large", 0, 1, 2 * MaxListBytes, 1, 1, ""},
		{"nothing", 0, 0, 0, 0, 0, ""},
		{"all that go into one", 0, MaxWholeList, 20, MaxWholeList, MaxWholeList, ""},
		{"one more", 0, MaxWholeList + 5, 20, 0, MaxWholeList + 1, "pageSize: there are more than 10000 things, which is the most in one answer: ask for pages of 1 to 1000, each with the nextPageToken of the one before as its pageToken"},
		{"large entries as one", 0, 3, third, 0, 3, "pageSize: all things have more than 3145728 bytes, which is the most in one answer: ask for pages of 1 to 1000"},
	} {
		looked := 0
		var list iter.Seq[int] = func(yield func(int) bool) {
			for looked < c.entries {
				if looked++; !yield(looked) {
					return
				}
			}
		}
		part, err := partOf("things", c.size)
		if err != nil {
			t.Fatal(err)
		}
		to := func(int) *boarddv1.Place { return &boarddv1.Place{Place: strings.Repeat("x", max(0, c.each))} }
		entries, next, err := entriesOf(part, list, to, func(n int) string { return fmt.Sprint(n) })
		if c.refused != "" {
			if job.KindOf(err) != job.Invalid || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %v; want %s", c.name, err, c.refused)
			}
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if len(entries) != c.want || looked != c.looked {
			t.Errorf("%s: %d entries of %d that were looked at, want %d of %d", c.name, len(entries), looked, c.want, c.looked)
		}
		wantNext := ""
		if c.refused == "" && c.want < c.entries {
			wantNext = fmt.Sprint(c.want)
		}
		if next != wantNext {
			t.Errorf("%s: the next page is after %q, want %q", c.name, next, wantNext)
		}
		if answer := (&boarddv1.ListPlacesResponse{Places: entries}); len(entries) > 1 && proto.Size(answer) > MaxListBytes {
			t.Errorf("%s: the answer has %d bytes", c.name, proto.Size(answer))
		}
	}
}

// manyTenants is a directory of so many tenants of the catalog.
func manyTenants(n int) directory.Directory {
	list := make([]catalog.Tenant, n)
	for i := range list {
		list[i] = catalog.Tenant{Name: fmt.Sprintf("tenant-%06d", i), Limits: config.Limits{Boards: 10, OpenJobs: 100_000}, Made: time.Unix(1, 0)}
	}
	return directory.Directory{Settings: &config.Config{}, View: catalog.ViewOf(list, nil, nil, nil)}
}

// tenantsPage makes the answer of a page from the middle of all tenants.
func tenantsPage(d directory.Directory, tenants int) *boarddv1.ListTenantsResponse {
	after := fmt.Sprintf("tenant-%06d", tenants/2-1)
	part, _ := partOf("tenants", 40)
	entries, next, _ := entriesOf(part, d.Tenants(after), toTenant, func(t directory.Tenant) string { return t.Name })
	return &boarddv1.ListTenantsResponse{Tenants: entries, NextPageToken: next}
}

// TestPageOfMany: a page allocates the same, however many entries the list has.
func TestPageOfMany(t *testing.T) {
	few, many := manyTenants(100), manyTenants(10_000)
	if got := tenantsPage(many, 10_000); len(got.GetTenants()) != 40 || got.GetTenants()[0].GetName() != "tenant-005000" || got.GetNextPageToken() != "tenant-005039" {
		t.Fatalf("got %v", got)
	}
	ofFew := testing.AllocsPerRun(20, func() { tenantsPage(few, 100) })
	ofMany := testing.AllocsPerRun(20, func() { tenantsPage(many, 10_000) })
	if ofMany > ofFew+5 {
		t.Errorf("a page of 10000 tenants takes %v allocations, of 100 it takes %v", ofMany, ofFew)
	}
}

// BenchmarkListTenantsPage makes a page of 40 tenants from the middle of few and of many.
func BenchmarkListTenantsPage(b *testing.B) {
	for _, n := range []int{100, 100_000} {
		d := manyTenants(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tenantsPage(d, n)
			}
		})
	}
}
