package host_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	hostboard "github.com/boardd/boardd/host/board"
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
	b.Name, b.Store = "near", "" // it has left something there
	left := catalog.Move{ID: strings.Repeat("0", 32), State: catalog.Moved, Ended: time.Now(), From: catalog.Home{Backend: "store", Settings: []byte("{}"), Store: "another"}}
	if _, err := kept.CreateBoard(within(t), catalog.Board{Board: b, Placed: true, Move: &left}, 0); err != nil {
		t.Fatal(err)
	}
	at := catalog.At{Tenant: tenant.Default, Name: "far"}
	eventually(t, "the boards are known", func() bool {
		return h.Hosted(at) != nil && h.Hosted(catalog.At{Tenant: tenant.Default, Name: "near"}) != nil
	})
	op := operator(t, h)
	for what, do := range map[string]func() error{
		"export": func() error {
			return op.ExportBoard(within(t), tenant.Default, "far", func(directory.Board) ([]byte, error) { return nil, nil }, io.Discard)
		},
		"import":   func() error { _, err := op.ImportBoard(within(t), tenant.Default, "far", nil, 1); return err },
		"rollback": func() error { _, err := op.Rollback(within(t), admin.Promotion{Board: "far", Name: "p"}); return err },
		"purge":    func() error { return op.DeleteBoard(within(t), tenant.Default, "far", 0, true) },
		"drop":     func() error { _, err := op.DropMoved(within(t), tenant.Default, "near"); return err },
		"delete":   func() error { return op.DeleteBoard(within(t), tenant.Default, "near", 0, false) },
	} {
		if err := do(); job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "only another server has") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, ok := kept.View().Boards.Get(at); !ok {
		t.Error("nobody knows of the board any more")
	}
	if near, ok := kept.View().Boards.Get(catalog.At{Tenant: tenant.Default, Name: "near"}); !ok || near.Move.State != catalog.Moved {
		t.Errorf("of the other one it is known: %t, with the move %+v", ok, near.Move)
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

// TestPurgedTenantOfAnotherStore: each server of the fleet purges what it has of a tenant, and says
// who has the rest.
func TestPurgedTenantOfAnotherStore(t *testing.T) {
	t.Parallel()
	c := config.Config{
		Advertise: "http://127.0.0.1:1", Catalog: "store",
		Tokens:   []tenant.Token{token(), {Name: "operator", Roles: []tenant.Role{tenant.Operator}, Digest: tenant.DigestOf(operatorSecret)}},
		Backends: []config.Backend{{Name: "store", Driver: "memory", Settings: []byte("{}"), Tenants: []string{"*"}}},
	}
	h, _ := open(t, host.Config{Config: c, Drivers: map[string]driver.Program{"memory": memdriver.Program()}})
	kept, err := h.Catalog(within(t))
	if err != nil {
		t.Fatal(err)
	}
	op := operator(t, h)
	made, err := op.CreateTenant(within(t), "acme", config.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	here := config.NewBoard("here")
	here.Backend = "store"
	if _, err := op.CreateBoard(within(t), "acme", here); err != nil {
		t.Fatal(err)
	}
	far := board("far", "store")
	far.Tenant, far.Store, far.Settings = "acme", "another", []byte("{}")
	if _, err := kept.CreateBoard(within(t), catalog.Board{Board: far, Owner: made.ID, Placed: true}, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both boards are known", func() bool {
		return h.Hosted(catalog.At{Tenant: "acme", Name: "far"}) != nil && h.Hosted(catalog.At{Tenant: "acme", Name: "here"}) != nil
	})
	if err := op.DeleteTenant(within(t), "acme", 0, true); job.KindOf(err) != job.Unavailable || !strings.Contains(err.Error(), "the board far lies in a store that only another server has") {
		t.Errorf("the purge of what this server cannot reach: %v", err)
	}
	if left := catalog.Of(kept.View().Boards, "acme"); len(left) != 1 || left[0].Name != "far" {
		t.Errorf("the catalog still has %+v", left)
	}
	if places, err := h.Places(within(t), "store", "", 0); err != nil || len(places) > 0 {
		t.Errorf("the store still has %+v, %v", places, err)
	}
}

// TestDeletedBoardsArePurged: jobs that were kept when their board was deleted go with a purge of
// the board, or of its tenant. The next tenant of the name has none of them.
func TestDeletedBoardsArePurged(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx, op := within(t), d.as[0]
	at := catalog.At{Tenant: "acme", Name: "kept"}
	create := func() {
		t.Helper()
		b := config.NewBoard(at.Name)
		b.Backend = "one"
		if _, err := op.CreateBoard(ctx, at.Tenant, b); err != nil {
			t.Fatal(err)
		}
	}
	jobs := func() int64 {
		t.Helper()
		var n int64
		err := again(ctx, func() error {
			on, err := d.hosts[0].Open(ctx, d.hosts[0].Hosted(at))
			if err != nil {
				return err
			}
			counts, err := on.Count(ctx)
			n = counts.Ready
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	post := func() {
		t.Helper()
		err := again(ctx, func() error {
			on, err := d.hosts[0].Open(ctx, d.hosts[0].Hosted(at))
			if err == nil {
				_, err = on.Post(ctx, []job.Posting{{Name: "n"}})
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := op.CreateTenant(ctx, at.Tenant, config.Limits{}); err != nil {
		t.Fatal(err)
	}
	create()
	post()
	if err := op.DeleteBoard(ctx, at.Tenant, at.Name, 0, false); err != nil {
		t.Fatal(err)
	}
	create()
	if n := jobs(); n != 1 {
		t.Errorf("made again the board has %d jobs, want the one that it had", n)
	}
	if err := op.DeleteBoard(ctx, at.Tenant, at.Name, 0, false); err != nil {
		t.Fatal(err)
	}
	if err := op.DeleteBoard(ctx, at.Tenant, at.Name, 0, true); err != nil {
		t.Errorf("a purge of what was kept: %v", err)
	}
	if err := op.DeleteBoard(ctx, at.Tenant, at.Name, 0, true); job.KindOf(err) != job.NotFound {
		t.Errorf("a purge of nothing: %v, want NOT_FOUND", err)
	}
	create()
	if n := jobs(); n != 0 {
		t.Errorf("after a purge the board has %d jobs", n)
	}
	post()
	if err := op.DeleteBoard(ctx, at.Tenant, at.Name, 0, false); err != nil {
		t.Fatal(err)
	}
	if err := op.DeleteTenant(ctx, at.Tenant, 0, true); err != nil {
		t.Fatal(err)
	}
	if _, err := op.CreateTenant(ctx, at.Tenant, config.Limits{}); err != nil {
		t.Fatal(err)
	}
	create()
	if n := jobs(); n != 0 {
		t.Errorf("the next tenant of the name is shown %d jobs of the one before", n)
	}
}

// TestPurgedBoardIsAnother: a board that is made under the name of a purged one is another one for
// each server, also for one that had the purged one open.
func TestPurgedBoardIsAnother(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	ctx, op := within(t), d.as[0]
	d.post(5)
	if _, err := d.board(1).Post(ctx, []job.Posting{{Name: "n"}}); err != nil { // which remembers it then
		t.Fatal(err)
	}
	forgotten := make(chan string, 1)
	host.SetForget(d.hosts[1], "one", func(board string) { forgotten <- board })
	if err := op.DeleteBoard(ctx, tenant.Default, "builds", 0, true); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no host has the board", func() bool { return d.hosts[0].Hosted(d.at()) == nil && d.hosts[1].Hosted(d.at()) == nil })
	if board := <-forgotten; board != "default/builds" {
		t.Errorf("the other host's driver, started again, opens another board than %s no more", board)
	}
	b := config.NewBoard("builds")
	b.Backend = "one"
	if _, err := op.CreateBoard(ctx, tenant.Default, b); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both hosts have the board", func() bool { return d.hosts[0].Hosted(d.at()) != nil && d.hosts[1].Hosted(d.at()) != nil })
	d.post(1)
	claim := d.claim(1)[0]
	for i := range d.hosts {
		if s := d.board(i).Status(); s.Loss != "" || s.Generation != 1 {
			t.Errorf("host %d: generation %d, %q", i, s.Generation, s.Loss)
		}
	}
	if errs, err := d.board(0).Consume(ctx, []hostboard.Ref{d.refOf(&claim)}); err != nil || errs[0] != nil {
		t.Errorf("a claim on the new board: %v, %v", err, errs)
	}
}
