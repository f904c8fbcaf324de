package host_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/directory"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestBoardOfAnotherStore: what is to be done to a board whose jobs lie in a store that only
// another server of the fleet has is refused, and not done in the store of the same backend here.
func TestBoardOfAnotherStore(t *testing.T) {
	t.Parallel()
	c := config.Config{
		Advertise: "http://127.0.0.1:1", Catalog: "store",
		Tokens:   []tenant.Token{token(), {Name: "operator", Roles: []tenant.Role{tenant.Operator}, Digest: tenant.DigestOf(operatorSecret)}},
		Backends: []config.Backend{{Name: "store", Driver: "memory", Settings: []byte("{}")}},
	}
	h, _ := open(t, host.Config{Config: c, Drivers: map[string]driver.Program{"memory": memdriver.Program()}})
	kept, err := h.Catalog(within(t))
	if err != nil {
		t.Fatal(err)
	}
	b := board("far", "store")
	b.Store, b.Settings = "another", []byte("{}")
	if _, err := kept.CreateBoard(within(t), catalog.Board{Board: b, Placed: true}, 0); err != nil {
		t.Fatal(err)
	}
	at := catalog.At{Tenant: tenant.Default, Name: "far"}
	eventually(t, "the board is known", func() bool { return h.Hosted(at) != nil })
	op := operator(t, h)
	for what, do := range map[string]func() error{
		"export": func() error {
			return op.ExportBoard(within(t), tenant.Default, "far", func(directory.Board) ([]byte, error) { return nil, nil }, io.Discard)
		},
		"import":   func() error { _, err := op.ImportBoard(within(t), tenant.Default, "far", nil, 1); return err },
		"rollback": func() error { _, err := op.Rollback(within(t), admin.Promotion{Board: "far", Name: "p"}); return err },
		"purge":    func() error { return op.DeleteBoard(within(t), tenant.Default, "far", 0, true) },
	} {
		if err := do(); job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "only another server has") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, ok := kept.View().Boards.Get(at); !ok {
		t.Error("nobody knows of the board any more")
	}
	if err := op.DeleteBoard(within(t), tenant.Default, "far", 0, false); err != nil {
		t.Errorf("its jobs are to be kept: %v", err)
	}
}

// TestPurgedTenantOfMovedBoards: of a tenant that is purged nothing is left, neither in the stores
// that its boards have left nor in the catalog. It is not deleted while a board moves.
func TestPurgedTenantOfMovedBoards(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx, op := within(t), d.as[0]
	made, err := op.CreateTenant(ctx, "acme", config.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	b := config.NewBoard("builds")
	b.Backend, b.History = "one", time.Hour
	if _, err := op.CreateBoard(ctx, "acme", b); err != nil {
		t.Fatal(err)
	}
	at := catalog.At{Tenant: "acme", Name: "builds"}
	eventually(t, "both hosts serve the board", func() bool { return d.hosts[0].Hosted(at) != nil && d.hosts[1].Hosted(at) != nil })
	on, err := d.hosts[0].Open(ctx, d.hosts[0].Hosted(at))
	if err == nil {
		_, err = on.Post(ctx, []job.Posting{{Name: "n"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	kept, err := d.hosts[0].Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	deployed := catalog.Deployment{Tenant: "acme", Board: "builds", Owner: made.ID}
	if _, err := kept.ChangeDeployment(ctx, deployed, func(catalog.Deployment) bool { return false }, func(*catalog.Deployment) error { return nil }); err != nil {
		t.Fatal(err)
	}
	d.two.trouble.Store(true)
	if _, _, err := op.MoveBoard(ctx, "acme", "builds", "two", host.MoveOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := op.DeleteTenant(ctx, "acme", 0, true); job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), "is moving") {
		t.Errorf("it is deleted while a board moves: %v", err)
	}
	d.two.trouble.Store(false)
	eventually(t, "the board has moved", func() bool {
		m, err := op.Move(ctx, "acme", "builds")
		return err == nil && m.State == catalog.Moved
	})
	if err := op.DeleteTenant(ctx, "acme", 0, true); err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"one", "two"} {
		places, err := d.hosts[0].Places(ctx, store, "", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range places {
			if p.Tenant == "acme" {
				t.Errorf("the place %s of the store %s is still the tenant's", p.Key, store)
			}
		}
	}
	if counts, err := d.one.Count(ctx, "acme/builds"); err == nil && counts.Open > 0 {
		t.Errorf("%d jobs are left in the old store", counts.Open)
	}
	if left := catalog.Of(kept.View().Deployments, "acme"); len(left) > 0 {
		t.Errorf("the catalog still has %+v", left)
	}
}
