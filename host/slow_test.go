package host_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// tardy is a store whose watches of documents tell everything a while later.
type tardy struct {
	driver.Driver

	by time.Duration
}

func (d *tardy) Documents() driver.Documents { return &tardyDocuments{d.Driver.Documents(), d.by} }

type tardyDocuments struct {
	driver.Documents

	by time.Duration
}

func (d *tardyDocuments) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		for change, err := range d.Documents.Watch(ctx, space) {
			select {
			case <-time.After(d.by):
			case <-ctx.Done():
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// telling serves a program's store, whose watches tell everything by so much later.
func telling(program driver.Program, by time.Duration) map[string]driver.Program {
	return map[string]driver.Program{"memory": program.Wrapped(func(d driver.Driver) driver.Driver { return &tardy{d, by} })}
}

// TestMadeElsewhereAMomentAgo: what one host has made, another one finds before its
// watch tells it, and before that host has read its catalog nothing is not found.
func TestMadeElsewhereAMomentAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drivers := oneStore(t, false)
		first, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers})
		late := telling(drivers["memory"], 300*time.Millisecond)
		h, err := host.Open(t.Context(), host.Config{Config: cataloged(""), Drivers: late})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = h.Close() }()
		ctx := t.Context()
		a, b := operator(t, first), operator(t, h)
		if _, err := b.Board(ctx, "nosuch", "PostJobs"); !errors.Is(err, job.Unavailable) {
			t.Errorf("before the catalog was read: %v", err)
		}
		time.Sleep(time.Minute)
		if _, err := b.Board(ctx, "nosuch", "PostJobs"); !errors.Is(err, job.NotFound) {
			t.Errorf("a board that there is not: %v", err)
		}
		for _, name := range []string{"one", "two"} {
			made := config.NewBoard(name)
			made.Backend = "store"
			if _, err := a.CreateBoard(ctx, "", made); err != nil {
				t.Fatal(err)
			}
			if name == "two" { // a change of what was made elsewhere
				if err := b.DeleteBoard(ctx, "", name, 0, false); err != nil {
					t.Errorf("deleting it on the other host: %v", err)
				}
				continue
			}
			if err := use(ctx, b, name); err != nil {
				t.Errorf("using it on the other host: %v", err)
			}
		}
		if _, err := a.CreateTenant(ctx, "acme", config.Limits{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.CreateToken(ctx, admin.NewToken{Tenant: "acme", Name: "t", Roles: []string{"viewer"}}); err != nil {
			t.Errorf("a token of a tenant that was made on the other host: %v", err)
		}
		if err := a.RevokeToken(ctx, "acme", "t"); err != nil {
			t.Errorf("revoking it on the first host: %v", err)
		}
	})
}

// TestListsBeforeTheCatalogWasRead: what lists the catalog is refused until it was read, for a
// part of the list would be taken for the whole.
func TestListsBeforeTheCatalogWasRead(t *testing.T) {
	t.Parallel()
	lists := map[string]func(*admin.Session) error{
		"tenants":  func(s *admin.Session) error { _, err := s.Tenants(""); return err },
		"tokens":   func(s *admin.Session) error { _, err := s.Tokens("", ""); return err },
		"boards":   func(s *admin.Session) error { _, err := s.TenantBoards("", ""); return err },
		"policies": func(s *admin.Session) error { _, err := s.Policies(""); return err },
		"asked":    func(s *admin.Session) error { _, err := s.Asked("", "declared"); return err },
		"known":    func(s *admin.Session) error { return s.Known() }, // ListBoards asks it
		"visit":    func(s *admin.Session) error { return s.Visit("acme") },
	}
	synctest.Test(t, func(t *testing.T) {
		late := telling(memdriver.Program(), 300*time.Millisecond)
		h, err := host.Open(t.Context(), host.Config{Config: cataloged("", board("declared", "store")), Drivers: late})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = h.Close() }()
		for name, list := range lists {
			if err := list(operator(t, h)); !errors.Is(err, job.Unavailable) {
				t.Errorf("%s: %v before the catalog was read", name, err)
			}
		}
		time.Sleep(time.Minute)
		if _, err := operator(t, h).CreateTenant(t.Context(), "acme", config.Limits{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for name, list := range lists {
			if err := list(operator(t, h)); err != nil {
				t.Errorf("%s: %v once it was read", name, err)
			}
		}
	})
}

// TestLoginWhileTheCatalogIsRead: as long as a part of the catalog was told, and not all of
// it, a token that is not known yet is neither let in nor refused for good.
func TestLoginWhileTheCatalogIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drivers := oneStore(t, false)
		first, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers})
		ctx := t.Context()
		if _, err := operator(t, first).CreateTenant(ctx, "acme", config.Limits{}); err != nil {
			t.Fatal(err)
		}
		_, secret, err := operator(t, first).CreateToken(ctx, admin.NewToken{Tenant: "acme", Name: "t", Roles: []string{"viewer"}})
		if err != nil {
			t.Fatal(err)
		}
		const each = 300 * time.Millisecond
		late := telling(drivers["memory"], each)
		h, err := host.Open(ctx, host.Config{Config: cataloged(""), Drivers: late})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = h.Close() }()
		for begun := time.Now(); time.Since(begun) < 2*each; time.Sleep(each / 3) { // before the first document, and with it
			if s, err := h.Login(ctx, secret); s != nil || !errors.Is(err, job.Unavailable) {
				t.Errorf("after %v: a session: %v, %v", time.Since(begun), s != nil, err)
			}
		}
		time.Sleep(time.Minute)
		if _, err := h.Login(ctx, secret); err != nil {
			t.Errorf("once it was read: %v", err)
		}
		if s, err := h.Login(ctx, secret+"x"); s != nil || !errors.Is(err, job.Unauthenticated) {
			t.Errorf("another secret: a session: %v, %v", s != nil, err)
		}
	})
}

// uncounted is a store that says nothing of how many jobs it has, once it was told so.
type uncounted struct {
	driver.Driver

	silent *atomic.Bool
}

func (d *uncounted) Count(ctx context.Context, board string) (driver.Counts, error) {
	if d.silent.Load() {
		<-ctx.Done()
		return driver.Counts{}, ctx.Err()
	}
	return d.Driver.Count(ctx, board)
}

// TestASilentStoreHoldsUpNoOther: posts on a board go on while the store of another board
// of the tenant, whose limit they share, does not answer; and the limit holds.
func TestASilentStoreHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var silent atomic.Bool
		program := memdriver.Program().Wrapped(func(d driver.Driver) driver.Driver { return &uncounted{d, &silent} })
		c := oneBackend("", board("a", "store"), board("b", "other"))
		c.Backends = append(c.Backends, config.Backend{Name: "other", Driver: "silent", Settings: []byte("{}")})
		c.Limits = map[string]config.Limits{tenant.Default: {OpenJobs: 50, Claims: 50}}
		_, s := open(t, host.Config{Config: c, Drivers: map[string]driver.Program{"memory": memdriver.Program(), "silent": program}})
		a, b := ready(t, s, "a"), ready(t, s, "b")
		ctx := t.Context()
		for range 10 {
			if results, err := b.Post(ctx, []job.Posting{{Name: "x"}}); err != nil || results[0].Err != nil {
				t.Fatal(err, results)
			}
		}
		time.Sleep(2 * time.Second)
		silent.Store(true)
		begun := time.Now()
		taken := 0
		for range 60 {
			switch results, err := a.Post(ctx, []job.Posting{{Name: "x"}}); {
			case err != nil:
				t.Fatal(err)
			case results[0].Err == nil:
				taken++
			case !errors.Is(results[0].Err, job.QuotaExceeded):
				t.Fatal(results[0].Err)
			}
		}
		if taken < 40 || taken > 41 { // one for the host, as the limits promise
			t.Errorf("%d jobs were taken, want the 40 that were left of 50, and one at most", taken)
		}
		if waited := time.Since(begun); waited > time.Second { // of the bubble's clock
			t.Errorf("60 posts waited %s for another board's store", waited)
		}
	})
}

// TestATokenDoesNotOutliveItsMaker: but for an operator who says so.
func TestATokenDoesNotOutliveItsMaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := open(t, host.Config{Config: cataloged(""), Drivers: oneStore(t, false)})
		ctx := t.Context()
		op := operator(t, h)
		soon := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
		sessionOf := func(role tenant.Role) *admin.Session {
			t.Helper()
			_, secret, err := op.CreateToken(ctx, admin.NewToken{Name: "short-" + string(role), Roles: []string{string(role)}, Expires: soon})
			if err != nil {
				t.Fatal(err)
			}
			s, err := login(ctx, h, secret)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		ofTenant, shortOp := sessionOf(tenant.TenantAdmin), sessionOf(tenant.Operator)
		for name, x := range map[string]struct {
			by      *admin.Session
			asked   time.Time
			outlive bool
			want    time.Time
			err     error
		}{
			"a-none":     {by: ofTenant, want: soon},
			"a-later":    {by: ofTenant, asked: soon.Add(time.Microsecond), want: soon},
			"a-sooner":   {by: ofTenant, asked: soon.Add(-time.Minute), want: soon.Add(-time.Minute)},
			"a-outlive":  {by: ofTenant, outlive: true, err: job.PermissionDenied},
			"o-none":     {by: shortOp, want: soon},
			"o-outlive":  {by: shortOp, outlive: true},
			"o-outlive2": {by: shortOp, outlive: true, asked: soon.Add(time.Hour), want: soon.Add(time.Hour)},
			"r-none":     {by: op},
			"r-later":    {by: op, asked: soon.Add(time.Hour), want: soon.Add(time.Hour)},
		} {
			made, secret, err := x.by.CreateToken(ctx, admin.NewToken{Name: name, Roles: []string{"viewer"}, Expires: x.asked, Outlive: x.outlive})
			if !errors.Is(err, x.err) || x.err == nil && (err != nil || !made.Expires.Equal(x.want)) {
				t.Errorf("%s: it ends at %v, want %v (%v)", name, made.Expires, x.want, err)
			}
			if x.err == nil && x.want.Equal(soon) {
				defer func() {
					if _, err := h.Login(ctx, secret); !errors.Is(err, job.Unauthenticated) {
						t.Errorf("%s: it lets somebody in after its maker has ended: %v", name, err)
					}
				}()
			}
		}
		time.Sleep(time.Hour)
	})
}
