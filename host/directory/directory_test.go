package directory_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/job"
)

func at(of, name string) catalog.At { return catalog.At{Tenant: of, Name: name} }

// town is a configuration and a catalog that disagree wherever they can.
func town() directory.Directory {
	settings := &config.Config{
		Tenants:  []string{"declared"},
		Backends: []config.Backend{{Name: "open", Driver: "embedded", Tenants: []string{"*"}}, {Name: "shut", Driver: "embedded"}},
		Boards:   []config.Board{{Name: "both", Backend: "shut"}, {Name: "b", Tenant: "implied", Backend: "shut"}},
		Tokens:   []tenant.Token{{Name: "both", Roles: []tenant.Role{tenant.Worker}, Digest: tenant.DigestOf("config")}},
	}
	digest := func(n int) string { return strings.Repeat(string("0123456789abcdef"[n]), 64) }
	view := catalog.ViewOf(
		[]catalog.Tenant{
			{Name: "made", ID: "2"}, {Name: "gone", ID: "3", Deleted: time.Unix(1, 0)}, {Name: "declared", ID: "4"},
		},
		[]catalog.Token{
			{Tenant: "default", Name: "both", Digest: digest(1), Roles: []tenant.Role{tenant.Worker}},
			{Tenant: "made", Name: "mine", Owner: "2", Digest: digest(2), Roles: []tenant.Role{tenant.Worker}},
			{Tenant: "made", Name: "earlier", Owner: "1", Digest: digest(3), Roles: []tenant.Role{tenant.Worker}},
			{Tenant: "gone", Name: "dead", Owner: "3", Digest: digest(4), Roles: []tenant.Role{tenant.Worker}},
			{Tenant: "made", Name: "garbage", Owner: "2", Digest: "x"},
		},
		[]catalog.Board{
			{Board: config.Board{Tenant: "default", Name: "both", Backend: "open"}},
			{Board: config.Board{Tenant: "made", Name: "served", Backend: "open"}, Owner: "2"},
			{Board: config.Board{Tenant: "made", Name: "shut out", Backend: "shut"}, Owner: "2"},
			{Board: config.Board{Tenant: "made", Name: "placed", Backend: "shut"}, Owner: "2", Placed: true},
			{Board: config.Board{Tenant: "made", Name: "earlier", Backend: "open"}, Owner: "1"},
		},
		[]catalog.Deployment{
			{Tenant: "made", Board: "served", Owner: "2", Version: 7},
			{Tenant: "made", Board: "placed", Owner: "1", Version: 8},
		},
	)
	return directory.Directory{Settings: settings, View: view}
}

// TestPartsOfDirectory checks that what is said of one board or one tenant is what is said of
// all of them.
func TestPartsOfDirectory(t *testing.T) {
	t.Parallel()
	d := town()
	all := d.Boards()
	for _, of := range []string{"default", "declared", "implied", "made", "gone", "nobody"} {
		for _, name := range []string{"both", "b", "served", "shut out", "placed", "earlier", "none"} {
			want, wanted := all[at(of, name)]
			got, ok := d.Board(at(of, name))
			if ok != wanted || !reflect.DeepEqual(got, want) {
				t.Errorf("board %s of %s: %+v, %v; among all boards it is %+v, %v", name, of, got, ok, want, wanted)
			}
		}
		var want []tenant.Token
		for _, token := range d.Credentials() {
			if token.Tenant == "" {
				token.Tenant = tenant.Default
			}
			if token.Tenant == of {
				want = append(want, token)
			}
		}
		byName := func(a, b tenant.Token) int { return strings.Compare(a.Name, b.Name) }
		got := d.CredentialsOf(of)
		slices.SortFunc(got, byName)
		slices.SortFunc(want, byName)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("tokens of %s: %+v; among all tokens they are %+v", of, got, want)
		}
	}
}

// TestDirectory asks everything of a configuration and a catalog that disagree.
func TestDirectory(t *testing.T) {
	t.Parallel()
	d := town()
	var tenants []string
	for x := range d.Tenants("") {
		tenants = append(tenants, x.Name)
	}
	boards := slices.Collect(maps.Keys(d.Boards()))
	slices.SortFunc(boards, func(a, b catalog.At) int { return strings.Compare(a.Tenant+"/"+a.Name, b.Tenant+"/"+b.Name) })
	credentials := map[catalog.At]bool{}
	for _, c := range d.Credentials() {
		credentials[at(c.Tenant, c.Name)] = true
	}
	listed := func(of string) (names []string) {
		for b := range d.TenantBoards(of, "", nil) {
			names = append(names, b.Name)
		}
		return names
	}
	known := func(of string) (names []string) {
		for x := range d.Tokens(of, "") {
			names = append(names, x.Name)
		}
		return names
	}
	for name, x := range map[string]struct{ got, want any }{
		"tenants":        {tenants, []string{"declared", "default", "gone", "implied", "made"}},
		"boards":         {boards, []catalog.At{at("default", "both"), at("implied", "b"), at("made", "placed"), at("made", "served")}},
		"declared wins":  {d.Boards()[at("default", "both")].Backend, "shut"},
		"credentials":    {credentials, map[catalog.At]bool{at("", "both"): true, at("made", "mine"): true}},
		"listed":         {listed("made"), []string{"placed", "served", "shut out"}},
		"listed, both":   {listed("default"), []string{"both"}},
		"tokens":         {known("made"), []string{"garbage", "mine"}},
		"tokens, both":   {known("default"), []string{"both"}},
		"deployed":       {d.Deployment(config.Board{Tenant: "made", Name: "served"}).Version, uint64(7)},
		"deployed early": {d.Deployment(config.Board{Tenant: "made", Name: "placed"}).Version, uint64(0)},
		"no tenant":      {job.KindOf(second(d.Tenant("nobody"))), job.NotFound},
	} {
		if diff := cmp.Diff(x.want, x.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"declared", "default", "implied", "made", "gone", "nobody"} {
		if got := slices.Contains(d.Declared(), name); got != d.Declares(name) {
			t.Errorf("Declares(%q) is %v, Declared has it: %v", name, d.Declares(name), got)
		}
	}
}

// TestPartsOfLists: a list after any name is the end of the whole list.
func TestPartsOfLists(t *testing.T) {
	t.Parallel()
	d := town()
	for _, of := range []string{"default", "declared", "implied", "made", "gone", "nobody"} {
		for what, list := range map[string]func(after string) []string{
			"tenants": func(after string) (names []string) {
				for x := range d.Tenants(after) {
					names = append(names, x.Name)
				}
				return names
			},
			"tokens": func(after string) (names []string) {
				for x := range d.Tokens(of, after) {
					names = append(names, x.Name)
				}
				return names
			},
			"boards": func(after string) (names []string) {
				for x := range d.TenantBoards(of, after, nil) {
					names = append(names, x.Name)
				}
				return names
			},
			"some boards": func(after string) (names []string) {
				for x := range d.TenantBoards(of, after, []string{"served", "none", "both", "earlier", "served"}) {
					names = append(names, x.Name)
				}
				return names
			},
		} {
			whole := list("")
			for _, after := range append([]string{"a", "declared0", "m", "~"}, whole...) {
				want := slices.DeleteFunc(slices.Clone(whole), func(n string) bool { return n <= after })
				if got := list(after); !slices.Equal(got, want) {
					t.Errorf("%s of %s after %q: %v, want %v", what, of, after, got, want)
				}
			}
		}
		var some []string
		for x := range d.TenantBoards(of, "", []string{"served", "none", "both", "earlier", "served"}) {
			some = append(some, x.Name)
		}
		if want := map[string][]string{"default": {"both"}, "made": {"served"}}[of]; !slices.Equal(some, want) {
			t.Errorf("some boards of %s: %v, want %v", of, some, want)
		}
	}
}

func second[A, B any](_ A, b B) B { return b }
