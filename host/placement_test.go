package host_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestPlacement: boards that name no backend go to the one that has room for the most more, of
// those that are open to their tenant, until there is none; what lies there counts, whoever put
// it there.
func TestPlacement(t *testing.T) {
	t.Parallel()
	c := config.Config{
		Catalog: "apart", Tenants: []string{"acme"},
		Tokens: []tenant.Token{token(), {Name: "operator", Roles: []tenant.Role{tenant.Operator}, Digest: tenant.DigestOf(operatorSecret)}},
		Backends: []config.Backend{
			{Name: "apart", Tenants: []string{"*"}},
			{Name: "a", Tenants: []string{"*"}, Placement: 2},
			{Name: "b", Tenants: []string{"*"}, Placement: 4},
			{Name: "others", Tenants: []string{"acme"}, Placement: 1},
		},
		Boards: []config.Board{board("declared", "b")},
	}
	for i := range c.Backends {
		c.Backends[i].Driver, c.Backends[i].Settings = "memory", []byte("{}")
	}
	h, _ := open(t, host.Config{Config: c, Drivers: map[string]driver.Program{"memory": memdriver.Program()}})
	as := operator(t, h)
	n := 0
	create := func(of, backend string) (string, error) {
		n++
		b := config.NewBoard(fmt.Sprint("n", n))
		b.Backend = backend
		made, err := as.CreateBoard(within(t), of, b)
		return made.Backend, err
	}
	var got []string
	for range 5 {
		on, err := create(tenant.Default, "")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, on)
	}
	if diff := cmp.Diff([]string{"b", "a", "b", "a", "b"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := create(tenant.Default, ""); job.KindOf(err) != job.QuotaExceeded {
		t.Errorf("where there is no room: %v", err)
	}
	if on, err := create("acme", ""); err != nil || on != "others" {
		t.Errorf("a tenant with a backend of its own gets %q, %v", on, err)
	}
	if on, err := create(tenant.Default, "a"); err != nil || on != "a" {
		t.Errorf("one that names its backend gets %q, %v", on, err)
	}
	for _, name := range []string{"n2", "n3"} { // of two on a, which has more than its room, and of one on b
		if err := as.DeleteBoard(within(t), tenant.Default, name, 0, true); err != nil {
			t.Fatal(err)
		}
	}
	if on, err := create(tenant.Default, ""); err != nil || on != "b" {
		t.Errorf("where there is room again: %q, %v", on, err)
	}
}
