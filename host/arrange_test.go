package host_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/plugins/embedded"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A population is what a test makes through one host, at random.
type population struct {
	*testing.T

	op      *admin.Session
	random  *rand.Rand
	tenants []string
	secrets map[string]catalog.At // of tokens that were ever made
}

// change makes one change. Many are refused, since something is not there, or is.
func (p *population) change() {
	ctx, of := within(p.T), p.tenants[p.random.IntN(len(p.tenants))]
	name := fmt.Sprintf("n%d", p.random.IntN(4))
	var err error
	switch p.random.IntN(8) {
	case 0:
		_, err = p.op.CreateTenant(ctx, of, config.Limits{})
	case 1:
		if p.random.IntN(3) == 0 {
			err = p.op.DeleteTenant(ctx, of, 0, true)
		}
	case 2:
		_, _, err = p.op.UpdateTenant(ctx, of, 0, func(l *config.Limits) error { l.Boards = 10 + p.random.Int64N(10); return nil })
	case 3, 4:
		var secret string
		if _, secret, err = p.op.CreateToken(ctx, admin.NewToken{Tenant: of, Name: name, Roles: []string{"worker"}}); err == nil {
			p.secrets[secret] = catalog.At{Tenant: of, Name: name}
		}
	case 5:
		err = p.op.RevokeToken(ctx, of, name)
	case 6:
		b := config.NewBoard(name)
		b.Backend = "store"
		_, err = p.op.CreateBoard(ctx, of, b)
	case 7:
		err = p.op.DeleteBoard(ctx, of, name, 0, true)
	}
	switch kind := job.KindOf(err); kind {
	case job.NoKind, job.NotFound, job.AlreadyExists, job.Precondition, job.Aborted, job.QuotaExceeded:
	default:
		p.Errorf("a change failed: %v", err)
	}
}

// arranged reports whether a host serves and lets in what its directory says, and what not.
func (p *population) arranged(h *host.Host) string {
	d := h.Directory()
	served := map[catalog.At]bool{}
	for at := range d.Boards() {
		served[at] = true
	}
	for _, of := range append(p.tenants, "default") {
		for _, name := range h.BoardNames(of) {
			if at := (catalog.At{Tenant: of, Name: name}); !served[at] {
				return fmt.Sprintf("board %v is served", at)
			}
			delete(served, catalog.At{Tenant: of, Name: name})
		}
	}
	if len(served) > 0 {
		return fmt.Sprintf("boards are not served: %v", served)
	}
	credentials := map[tenant.Digest]bool{}
	for _, t := range d.Credentials() {
		credentials[t.Digest] = true
	}
	for secret, at := range p.secrets {
		_, err := login(within(p.T), h, secret)
		if want := credentials[tenant.DigestOf(secret)]; (err == nil) != want {
			return fmt.Sprintf("a token %v is let in: %v; want %v", at, err, want)
		}
	}
	return ""
}

// TestArrangedByChanges makes changes at random through one host. What both hosts of the
// catalog serve and let in, each of which looked at what had changed alone, is what follows
// from the catalog as a whole.
func TestArrangedByChanges(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	c := cataloged("")
	c.Backends[0].Tenants = []string{"*"}
	first, _ := open(t, host.Config{Config: c, Drivers: drivers})
	second, _ := open(t, host.Config{Config: c, Drivers: drivers})
	p := &population{
		T: t, op: operator(t, first), random: rand.New(rand.NewPCG(rand.Uint64(), 7)),
		tenants: []string{"acme", "globex", "initech"}, secrets: map[string]catalog.At{},
	}
	for range 4 {
		for range 60 {
			p.change()
		}
		eventually(t, "the second host has seen all", func() bool {
			return reflect.DeepEqual(first.Directory().Boards(), second.Directory().Boards()) && len(first.Directory().Credentials()) == len(second.Directory().Credentials())
		})
		for name, h := range map[string]*host.Host{"first": first, "second": second} {
			var why string
			eventually(t, "the "+name+" host is arranged", func() bool { why = p.arranged(h); return why == "" })
		}
	}
	if len(p.secrets) == 0 {
		t.Error("no token was made")
	}
}

// BenchmarkCatalogChange measures what it takes to make a tenant, and a token, in a catalog
// on the embedded store that holds few or many of each.
func BenchmarkCatalogChange(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("tenants=%d", n), func(b *testing.B) {
			op := filled(b, n)
			made := 0
			of := func() string { made++; return fmt.Sprintf("t%d", made%n) }
			for what, change := range map[string]func() error{
				"tenant": func() error {
					_, err := op.CreateTenant(b.Context(), "new-"+of()+fmt.Sprintf("-%d", made), config.Limits{})
					return err
				},
				"token": func() error {
					_, _, err := op.CreateToken(b.Context(), admin.NewToken{Tenant: of(), Name: fmt.Sprintf("new-%d", made), Roles: []string{"worker"}})
					return err
				},
			} {
				b.Run(what, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if err := change(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// filled returns an operator of a host whose catalog has so many tenants, with a token each.
func filled(b *testing.B, n int) *admin.Session {
	b.Helper()
	program := embedded.Program()
	d, err := program.Open(b.Context(), driver.Config{Settings: []byte("{}"), DataDir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	program.Open = func(context.Context, driver.Config) (driver.Driver, error) { return &shared{d, false}, nil }
	h, err := host.Open(b.Context(), host.Config{
		Config: cataloged(""), Drivers: map[string]driver.Program{"memory": program}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	op, err := login(b.Context(), h, operatorSecret)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		if _, err := op.CreateTenant(b.Context(), name, config.Limits{}); err != nil {
			b.Fatal(err)
		}
		if _, _, err := op.CreateToken(b.Context(), admin.NewToken{Tenant: name, Name: "first", Roles: []string{"worker"}}); err != nil {
			b.Fatal(err)
		}
	}
	return op
}
