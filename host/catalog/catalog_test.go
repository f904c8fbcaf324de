package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func store(t testing.TB) driver.Documents {
	t.Helper()
	d, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}"), Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.Documents()
}

// follow runs a catalog on documents until the test ends or stop is called.
func follow(t *testing.T, docs driver.Documents, o catalog.Options) (c *catalog.Catalog, stop func()) {
	t.Helper()
	o.Logger = quiet()
	c = catalog.New(docs, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	<-c.Synced()
	return c, stop
}

func never[T any](T) bool { return false }

func digest(secret string) string {
	d := tenant.DigestOf(secret)
	return fmt.Sprintf("%x", d[:])
}

func wantKind(t *testing.T, what string, err error, want job.Kind) {
	t.Helper()
	if job.KindOf(err) != want {
		t.Errorf("%s: got %v (%v), want %v", what, job.KindOf(err), err, want)
	}
}

// TestTwoHostsSeeEachOther: what one host changes, the other sees, and the one
// that changed it sees it when the change returns.
func TestTwoHostsSeeEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		a, _ := follow(t, docs, catalog.Options{})
		b, _ := follow(t, docs, catalog.Options{})
		ctx := t.Context()
		made, err := a.CreateTenant(ctx, catalog.Tenant{Name: "acme", Limits: config.Limits{Boards: 3}})
		if err != nil {
			t.Fatal(err)
		}
		token, err := a.CreateToken(ctx, catalog.Token{Tenant: "acme", Name: "ci", Owner: made.ID, Roles: []tenant.Role{tenant.Poster}, Digest: digest("x")}, never)
		if err != nil {
			t.Fatal(err)
		}
		if got := record(a.View().Tokens, catalog.At{Tenant: "acme", Name: "ci"}); got.ID != token.ID || got.Version != token.Version {
			t.Errorf("the host that made the token sees %+v, want %+v", got, token)
		}
		synctest.Wait()
		v := b.View()
		if got := record(v.Tenants, "acme"); got.ID != made.ID || got.Limits.Boards != 3 || got.Version != made.Version {
			t.Errorf("the other host sees the tenant %+v, want %+v", got, made)
		}
		if got := record(v.Tokens, catalog.At{Tenant: "acme", Name: "ci"}); got.ID != token.ID {
			t.Errorf("the other host sees the token %+v, want %+v", got, token)
		}
		if err := b.RemoveToken(ctx, token); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for name, c := range map[string]*catalog.Catalog{"a": a, "b": b} {
			if _, ok := c.View().Tokens.Get(catalog.At{Tenant: "acme", Name: "ci"}); ok {
				t.Errorf("host %s sees the token after it was taken away", name)
			}
		}
	})
}

func TestConcurrentAdminsLoseNothing(t *testing.T) {
	t.Parallel()
	docs := store(t)
	a, _ := follow(t, docs, catalog.Options{})
	b, _ := follow(t, docs, catalog.Options{})
	ctx := t.Context()
	made, err := a.CreateTenant(ctx, catalog.Tenant{Name: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Int64
	var wg sync.WaitGroup
	for _, c := range []*catalog.Catalog{a, b} {
		for range 20 {
			wg.Go(func() {
				for {
					present := record(c.View().Tenants, "acme")
					if present.Version == 0 {
						continue
					}
					present.Limits.OpenJobs++
					_, err := c.UpdateTenant(ctx, present)
					switch job.KindOf(err) {
					case job.NoKind:
						done.Add(1)
						return
					case job.Aborted:
						time.Sleep(time.Millisecond) // the view follows
					default:
						t.Errorf("update: %v", err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	fresh, _ := follow(t, docs, catalog.Options{})
	if got := record(fresh.View().Tenants, "acme").Limits.OpenJobs; got != done.Load() || got != 40 {
		t.Errorf("%d of %d changes are left", got, done.Load())
	}
	_, err = a.UpdateTenant(ctx, made)
	wantKind(t, "a change of an old version", err, job.Aborted)
	_, err = a.CreateTenant(ctx, catalog.Tenant{Name: "acme"})
	wantKind(t, "a tenant that is there", err, job.AlreadyExists)
	wantKind(t, "a tenant that is not there", a.RemoveTenant(ctx, catalog.Tenant{Name: "none", Version: 7}), job.NotFound)
}

// TestBoardsAreNeverMoreThanTheLimit makes boards at once from two hosts.
func TestBoardsAreNeverMoreThanTheLimit(t *testing.T) {
	t.Parallel()
	docs := store(t)
	a, _ := follow(t, docs, catalog.Options{})
	b, _ := follow(t, docs, catalog.Options{})
	const most = 5
	var wg sync.WaitGroup
	for i, c := range []*catalog.Catalog{a, b} {
		for n := range 20 {
			wg.Go(func() {
				board := catalog.Board{Board: config.NewBoard(fmt.Sprintf("b%d-%d", i, n))}
				board.Tenant = "acme"
				if _, err := c.CreateBoard(t.Context(), board, most); err != nil && !errors.Is(err, job.QuotaExceeded) {
					t.Errorf("create: %v", err)
				}
			})
		}
	}
	wg.Wait()
	docsNow, err := docs.List(t.Context(), driver.Space{Name: "catalog"}, "board/", 0)
	if err != nil || len(docsNow) > most {
		t.Errorf("%d boards (%v), want at most %d", len(docsNow), err, most)
	}
	for n := len(docsNow); n < most; n++ { // one after the other the rest fits
		board := catalog.Board{Board: config.NewBoard(fmt.Sprintf("late%d", n))}
		board.Tenant = "acme"
		if _, err := a.CreateBoard(t.Context(), board, most); err != nil {
			t.Errorf("board %d of %d: %v", n+1, most, err)
		}
	}
}

// TestALimitIsCountedByFewReads: who makes a board of a tenant with a limit reads that tenant's
// boards, and not what the catalog has behind them.
func TestALimitIsCountedByFewReads(t *testing.T) {
	t.Parallel()
	docs := &listed{Documents: store(t)}
	c, _ := follow(t, docs, catalog.Options{})
	made := func(of, name string, most int) error {
		b := catalog.Board{Board: config.NewBoard(name)}
		b.Tenant = of
		_, err := c.CreateBoard(t.Context(), b, most)
		return err
	}
	for i := range 200 {
		if err := made(fmt.Sprint("other", i), "b", 0); err != nil {
			t.Fatal(err)
		}
	}
	docs.n.Store(0)
	const most = 3
	for i := range most {
		if err := made("acme", fmt.Sprint("b", i), most); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, "one more", made("acme", "more", most), job.QuotaExceeded)
	if n := docs.n.Load(); n > (most+1)*(most+1) {
		t.Errorf("%d documents were read for %d boards of a tenant that may have %d", n, most+1, most)
	}
}

// broken is documents that answer only while they are told to.
type broken struct {
	driver.Documents

	mu   sync.Mutex
	down context.Context // ends the watches
	cut  context.CancelFunc
}

func newBroken(docs driver.Documents) *broken {
	b := &broken{Documents: docs}
	b.down, b.cut = context.WithCancel(context.Background())
	return b
}

func (b *broken) state() (driver.Documents, context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Documents, b.down
}

func (b *broken) repair(docs driver.Documents) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.Documents = docs
	b.down, b.cut = context.WithCancel(context.Background())
}

func (b *broken) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	docs, down := b.state()
	if down.Err() != nil {
		return driver.Document{}, job.Unavailable
	}
	return docs.Get(ctx, space, name)
}

func (b *broken) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	docs, down := b.state()
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(down, cancel)
	inner := docs.Watch(ctx, space)
	return func(yield func(driver.DocumentChange, error) bool) {
		if down.Err() != nil {
			yield(driver.DocumentChange{}, job.Unavailable)
			return
		}
		inner(yield)
	}
}

// TestSilence: without an answer for a minute nobody is let in; with one again,
// everybody is.
func TestSilence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		b := newBroken(docs)
		c, _ := follow(t, b, catalog.Options{})
		if never := catalog.New(docs, catalog.Options{}); !errors.Is(never.Current(), job.Unavailable) || never.Age() >= 0 {
			t.Errorf("a catalog that was never read: %v, %v", never.Current(), never.Age())
		}
		time.Sleep(10 * time.Minute) // nothing changes, and the store answers
		if err := c.Current(); err != nil {
			t.Errorf("a still store: %v", err)
		}
		if age := c.Age(); age < 0 || age > 6*time.Second {
			t.Errorf("a still store answered %v ago", age)
		}
		b.cut()
		time.Sleep(catalog.MaxSilence - 6*time.Second)
		if err := c.Current(); err != nil {
			t.Errorf("before the time is up: %v", err)
		}
		time.Sleep(12 * time.Second)
		wantKind(t, "after a minute", c.Current(), job.Unavailable)
		if age := c.Age(); age < catalog.MaxSilence {
			t.Errorf("after a minute: %v", age)
		}
		b.repair(docs)
		time.Sleep(10 * time.Second)
		if err := c.Current(); err != nil {
			t.Errorf("with an answer again: %v", err)
		}
	})
}

// late is documents whose watch tells each change a while after it was made.
type late struct {
	driver.Documents

	by time.Duration
}

func (l late) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		for change, err := range l.Documents.Watch(ctx, space) {
			if err == nil && !change.Synced {
				time.Sleep(l.by)
			}
			if !yield(change, err) {
				return
			}
		}
	}
}

// TestLateWatch: of what the store has and its watch has not told yet, nobody hears that there
// is none.
func TestLateWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		c, _ := follow(t, late{docs, time.Minute}, catalog.Options{})
		key := catalog.Key("tenant", "acme")
		if err := c.Refresh(t.Context(), key); err != nil {
			t.Errorf("of nothing: %v", err)
		}
		other, _ := follow(t, docs, catalog.Options{})
		if _, err := other.CreateTenant(t.Context(), catalog.Tenant{Name: "acme"}); err != nil {
			t.Fatal(err)
		}
		wantKind(t, "before the watch has told it", c.Refresh(t.Context(), key), job.Unavailable)
		time.Sleep(10 * time.Minute) // other changes come first
		if err := c.Refresh(t.Context(), key); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// TestRevokedStaysRevoked brings the store back in the state that it had before.
func TestRevokedStaysRevoked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs, older := store(t), store(t)
		b := newBroken(docs)
		c, _ := follow(t, b, catalog.Options{})
		ctx := t.Context()
		var kept [2]catalog.Token
		for i := range kept {
			var err error
			if kept[i], err = c.CreateToken(ctx, catalog.Token{Tenant: "default", Name: fmt.Sprint("t", i), Roles: []tenant.Role{tenant.Viewer}, Digest: digest("x")}, never); err != nil {
				t.Fatal(err)
			}
		}
		before, err := docs.List(ctx, driver.Space{Name: "catalog"}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range before {
			if _, err := older.Put(ctx, driver.Space{Name: "catalog"}, doc, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.RemoveToken(ctx, kept[0]); err != nil {
			t.Fatal(err)
		}
		b.cut()
		b.repair(older)
		time.Sleep(time.Minute)
		if _, ok := c.View().Tokens.Get(catalog.At{Tenant: "default", Name: "t0"}); ok {
			t.Error("the store was set back, and a revoked token lives again")
		}
		if _, ok := c.View().Tokens.Get(catalog.At{Tenant: "default", Name: "t1"}); !ok {
			t.Error("a token that was never revoked is gone")
		}
	})
}

func TestNewerFormatIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		for name, data := range map[string]string{
			"tenant/newer":   `{"format":2,"record":{"name":"newer"}}`,
			"tenant/strange": `{"format":1,"record":{"name":"strange","colour":"red"}}`,
			"tenant/broken":  `{"format":`,
			"planet/mars":    `{}`,
		} {
			if _, err := docs.Put(t.Context(), driver.Space{Name: "catalog"}, driver.Document{Name: name, Data: []byte(data)}, 0); err != nil {
				t.Fatal(err)
			}
		}
		c, _ := follow(t, docs, catalog.Options{})
		if got := c.View().Tenants; got.Len() != 0 {
			t.Errorf("documents that cannot be read count: %d", got.Len())
		}
		for _, name := range []string{"newer", "strange", "broken"} {
			_, err := c.CreateTenant(t.Context(), catalog.Tenant{Name: name})
			wantKind(t, name, err, job.AlreadyExists)
		}
	})
}

func TestPolicyVersions(t *testing.T) {
	t.Parallel()
	docs := store(t)
	c, _ := follow(t, docs, catalog.Options{})
	ctx := t.Context()
	put := func(name string, module []byte) catalog.Policy {
		t.Helper()
		p, err := c.PutPolicy(ctx, catalog.Policy{Tenant: "acme", Name: name}, module, "acme/root", never)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := put("p", []byte("one"))
	if again := put("p", []byte("one")); again.Version != first.Version || len(again.Versions) != 1 {
		t.Errorf("the same module again made %+v of %+v", again, first)
	}
	for i := range catalog.MaxPolicyVersions + 3 {
		put("p", fmt.Appendf(nil, "module %d", i))
	}
	last := put("p", []byte("last"))
	if len(last.Versions) != catalog.MaxPolicyVersions {
		t.Errorf("%d versions are kept, want %d", len(last.Versions), catalog.MaxPolicyVersions)
	}
	module, err := c.Module(ctx, last.Versions[0].Digest)
	if err != nil || !bytes.Equal(module, []byte("last")) {
		t.Errorf("the module is %q, %v", module, err)
	}
	other := put("q", []byte("last"))
	if err := c.RemovePolicy(ctx, last); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Module(ctx, other.Versions[0].Digest); err != nil {
		t.Errorf("a module that another policy has: %v", err)
	}
	_, err = c.Module(ctx, last.Versions[1].Digest)
	wantKind(t, "a module that nobody has", err, job.NotFound)
	if _, err := c.PutPolicy(ctx, catalog.Policy{Tenant: "acme", Name: "large"}, make([]byte, catalog.MaxModule), "x", never); err != nil {
		t.Errorf("the largest module: %v", err)
	}
	_, err = c.PutPolicy(ctx, catalog.Policy{Tenant: "acme", Name: "large"}, make([]byte, catalog.MaxModule+1), "x", never)
	wantKind(t, "a module that is too large", err, job.Invalid)
}

// TestModulesGo: a module stays for as long as a policy, a release that a board can be
// taken back to, or a board's settings name it, and no longer.
func TestModulesGo(t *testing.T) {
	t.Parallel()
	docs := store(t)
	c, _ := follow(t, docs, catalog.Options{})
	ctx := t.Context()
	put := func(name, module string) string {
		t.Helper()
		p, err := c.PutPolicy(ctx, catalog.Policy{Tenant: "acme", Name: name}, []byte(module), "acme/root", never)
		if err != nil {
			t.Fatal(err)
		}
		return p.Versions[0].Digest
	}
	kept := func() int {
		t.Helper()
		list, err := docs.List(ctx, driver.Space{Name: "catalog-modules"}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	give := func(releases ...catalog.Release) {
		t.Helper()
		_, err := c.ChangeDeployment(ctx, catalog.Deployment{Tenant: "acme", Board: "b"}, func(catalog.Deployment) bool { return false }, func(d *catalog.Deployment) error {
			d.Policies = []catalog.Deployed{{Name: "p", Releases: releases}}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first := put("p", "first")
	release := catalog.Release{Name: "p", Digest: first, Size: len("first")}
	give(release)
	ruled := put("p", "ruled")
	b, err := c.CreateBoard(ctx, catalog.Board{Board: config.Board{Tenant: "acme", Name: "c", Ordering: &config.Rule{Policy: "p", Module: ruled}}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range catalog.MaxPolicyVersions + 5 {
		put("p", fmt.Sprint("module ", i))
	}
	if n := kept(); n != catalog.MaxPolicyVersions+2 {
		t.Fatalf("%d modules are kept: want %d versions, a release and a board's rule", n, catalog.MaxPolicyVersions)
	}
	give()
	if n := kept(); n != catalog.MaxPolicyVersions+1 {
		t.Errorf("%d modules are kept after the release went", n)
	}
	if _, err := c.ChangeDeployment(ctx, catalog.Deployment{Tenant: "acme", Board: "b"}, func(catalog.Deployment) bool { return false }, func(d *catalog.Deployment) error {
		d.Shadow = &release
		return nil
	}); job.KindOf(err) != job.Aborted {
		t.Errorf("a module that was taken away meanwhile: %v", err)
	}
	if err := c.RemoveBoard(ctx, b); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != catalog.MaxPolicyVersions {
		t.Errorf("%d modules are kept after the board went", n)
	}
	if err := c.RemovePolicy(ctx, record(c.View().Policies, catalog.At{Tenant: "acme", Name: "p"})); err != nil {
		t.Fatal(err)
	}
	if n := kept(); n != 0 {
		t.Errorf("%d modules are kept of no policy", n)
	}
}

func TestHeads(t *testing.T) {
	t.Parallel()
	c, _ := follow(t, store(t), catalog.Options{})
	ctx := t.Context()
	if _, ok, err := c.Head(ctx, "h"); ok || err != nil {
		t.Errorf("a head that was never published: %v, %v", ok, err)
	}
	for _, n := range []uint64{5, 3} {
		if err := c.PublishHead(ctx, catalog.Head{Host: "h", Sequence: n, Hash: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok, err := c.Head(ctx, "h"); !ok || err != nil || got.Sequence != 5 || got.Hash != "5" {
		t.Errorf("got %+v, %v, %v", got, ok, err)
	}
}

// record returns a record of a view, or an empty one.
func record[K, T any](of catalog.Table[K, T], key K) T {
	found, _ := of.Get(key)
	return found
}
