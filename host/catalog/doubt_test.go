package catalog_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var catalogSpace = driver.Space{Name: "catalog"}

// wipe takes documents away as somebody does who knows nothing of catalogs.
func wipe(t *testing.T, docs driver.Documents, gone func(name string) bool) {
	t.Helper()
	list, err := docs.List(t.Context(), catalogSpace, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range list {
		if gone(doc.Name) {
			if err := docs.Delete(t.Context(), catalogSpace, doc.Name, doc.Version); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func everything(string) bool { return true }

func memory(t *testing.T, folder string) *catalog.Memory {
	t.Helper()
	m, err := catalog.OpenMemory(folder, true, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// TestMemoryLeftHalfWritten: what a process that was killed had begun to write is taken away by the
// next, and stays where another may be at it.
func TestMemoryLeftHalfWritten(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{true, false} {
		folder := t.TempDir()
		left := filepath.Join(folder, ".new-123")
		if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := catalog.OpenMemory(folder, alone, quiet())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(left); (err == nil) == alone {
			t.Errorf("alone: %v, and what was left half written: %v", alone, err)
		}
	}
}

// fill makes a tenant with boards and a policy.
func fill(t *testing.T, c *catalog.Catalog) catalog.Tenant {
	t.Helper()
	made, err := c.CreateTenant(t.Context(), catalog.Tenant{Name: "acme", Limits: config.Limits{Boards: 30}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		b := catalog.Board{Board: config.NewBoard(fmt.Sprint("b", i)), Owner: made.ID}
		b.Tenant = "acme"
		if _, err := c.CreateBoard(t.Context(), b, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.PutPolicy(t.Context(), catalog.Policy{Tenant: "acme", Name: "p", Owner: made.ID}, []byte("module"), "acme/x", func(p catalog.Policy) bool { return p.Owner != made.ID }); err != nil {
		t.Fatal(err)
	}
	return made
}

// wantAll checks that everything that fill made is there.
func wantAll(t *testing.T, what string, c *catalog.Catalog) {
	t.Helper()
	v := c.View()
	if v.Tenants.Len() != 1 || v.Boards.Len() != 10 || v.Policies.Len() != 1 {
		t.Errorf("%s: %d tenants, %d boards, %d policies are served; want 1, 10 and 1", what, v.Tenants.Len(), v.Boards.Len(), v.Policies.Len())
	}
}

// TestALostCatalogIsServedOn: whatever becomes of the store's documents, what was known
// of the catalog goes on, and nothing in it can be changed.
func TestALostCatalogIsServedOn(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]func(string) bool{
		"all":       everything,
		"identity":  func(n string) bool { return n == "_identity" || n == "board/acme/b3" },
		"half":      func(n string) bool { return strings.HasPrefix(n, "board/") && n < "board/acme/b5" },
		"one board": func(n string) bool { return n == "board/acme/b7" },
		"tenant":    func(n string) bool { return n == "tenant/acme" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				docs := store(t)
				folder := t.TempDir()
				m := memory(t, folder)
				c, stop := follow(t, docs, catalog.Options{Memory: m})
				made := fill(t, c)
				time.Sleep(2 * time.Second)
				wipe(t, docs, gone)
				synctest.Wait()
				wantAll(t, "while the server runs", c)
				d := c.Doubt()
				if d == nil || d.Missing == 0 {
					t.Fatalf("nothing is said of the loss: %v", d)
				}
				_, err := c.UpdateTenant(t.Context(), made)
				wantKind(t, "a change", err, job.Precondition)
				wantKind(t, "a deletion", c.RemoveTenant(t.Context(), made), job.Precondition)
				_, err = c.PutPolicy(t.Context(), catalog.Policy{Tenant: "acme", Name: "q"}, []byte("m"), "x", never)
				wantKind(t, "a policy", err, job.Precondition)
				stop()
				_ = m.Close()

				c, _ = follow(t, docs, catalog.Options{Memory: memory(t, folder)})
				wantAll(t, "after a restart", c)
				if again := c.Doubt(); again == nil || again.Missing != d.Missing {
					t.Errorf("after a restart: %v, before: %v", again, d)
				}
			})
		})
	}
}

// export reads all of a catalog.
func export(t *testing.T, c *catalog.Catalog) (all []catalog.Exported) {
	t.Helper()
	for after := ""; ; {
		page, next, missing, err := c.Export(t.Context(), after)
		if err != nil || len(missing) > 0 {
			t.Fatalf("export: %v, missing %v", err, missing)
		}
		all = append(all, page...)
		if next == "" {
			return all
		}
		after = next
	}
}

// TestALossIsResolved: by putting everything back, or by accepting it, at one of two
// servers.
func TestALossIsResolved(t *testing.T) {
	t.Parallel()
	for _, accept := range []bool{false, true} {
		t.Run(fmt.Sprint("accept ", accept), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				docs := store(t)
				folder := t.TempDir()
				a, _ := follow(t, docs, catalog.Options{Memory: memory(t, folder)})
				b, _ := follow(t, docs, catalog.Options{Memory: memory(t, t.TempDir())})
				made := fill(t, a)
				time.Sleep(3 * time.Second)
				wipe(t, docs, everything)
				digest := fmt.Sprintf("%x", sha256.Sum256([]byte("module")))
				if doc, err := docs.Get(t.Context(), driver.Space{Name: "catalog-modules"}, digest); err != nil {
					t.Fatal(err)
				} else if err := docs.Delete(t.Context(), driver.Space{Name: "catalog-modules"}, digest, doc.Version); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				all := export(t, a)
				if len(all) != 13 {
					t.Errorf("%d records were exported, want a tenant, ten boards, a policy and a module", len(all))
				}
				if !accept {
					written, kept, err := a.Import(t.Context(), all, false)
					if err != nil || written != 13 || kept != 0 {
						t.Errorf("import: %d written, %d kept: %v", written, kept, err)
					}
				}
				if err := a.Accept(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				for name, c := range map[string]*catalog.Catalog{"a": a, "b": b} {
					if d := c.Doubt(); d != nil {
						t.Errorf("server %s is in doubt still: %v", name, d)
					}
					switch n := c.View().Boards.Len(); {
					case accept && n != 0:
						t.Errorf("server %s: %d boards after the loss was accepted", name, n)
					case !accept:
						wantAll(t, "server "+name, c)
					}
				}
				if accept {
					if _, err := b.CreateTenant(t.Context(), catalog.Tenant{Name: "acme"}); err != nil {
						t.Errorf("a change afterwards: %v", err)
					}
					return
				}
				if got := record(b.View().Tenants, "acme").ID; got != made.ID {
					t.Errorf("it is another tenant: %s, not %s", got, made.ID)
				}
				if _, err := b.UpdateTenant(t.Context(), record(b.View().Tenants, "acme")); err != nil {
					t.Errorf("a change afterwards: %v", err)
				}
				if data, err := b.Module(t.Context(), digest); err != nil || string(data) != "module" {
					t.Errorf("the module: %q, %v", data, err)
				}
			})
		})
	}
}

// unordered is documents whose watch tells of the catalog's identity before the records
// that were written earlier, as one may that looks for changes by name.
type unordered struct{ driver.Documents }

func (u unordered) Watch(ctx context.Context, in driver.Space) iter.Seq2[driver.DocumentChange, error] {
	return func(yield func(driver.DocumentChange, error) bool) {
		var held []driver.DocumentChange
		identified := false
		for change, err := range u.Documents.Watch(ctx, in) {
			if !identified && !change.Deleted && err == nil && strings.HasPrefix(change.Document.Name, "token/") {
				held = append(held, change)
				continue
			}
			if !yield(change, err) {
				return
			}
			if change.Document.Name != "_identity" {
				continue
			}
			if identified = !change.Deleted; !identified {
				continue
			}
			for _, late := range held {
				if !yield(late, nil) {
					return
				}
			}
			held = nil
		}
	}
}

// TestAcceptanceBeforeTheRecords: a token that was put back is valid too for a server that
// hears of the acceptance before it hears of the token.
func TestAcceptanceBeforeTheRecords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		a, _ := follow(t, docs, catalog.Options{Memory: memory(t, t.TempDir())})
		b, _ := follow(t, unordered{docs}, catalog.Options{Memory: memory(t, t.TempDir())})
		fill(t, a)
		for _, name := range []string{"t0", "t1"} {
			if _, err := a.CreateToken(t.Context(), catalog.Token{Tenant: "acme", Name: name, Digest: digest(name)}, never); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if n := b.View().Tokens.Len(); n != 2 {
			t.Fatalf("%d tokens are known, want 2", n)
		}
		all := export(t, a)
		wipe(t, docs, everything)
		synctest.Wait()
		if b.Doubt() == nil {
			t.Error("the loss was not noticed")
		}
		if _, _, err := a.Import(t.Context(), all, false); err != nil {
			t.Fatal(err)
		}
		if err := a.Accept(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantAll(t, "after the import", b)
		if n := b.View().Tokens.Len(); n != 2 || b.Doubt() != nil {
			t.Errorf("after the import %d tokens are valid, want 2; in doubt: %v", n, b.Doubt())
		}
	})
}

// TestDeletedIsNoLoss: what others delete while a server is away, or at the same
// moment, is gone without a question.
func TestDeletedIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		folder := t.TempDir()
		a, _ := follow(t, docs, catalog.Options{})
		m := memory(t, folder)
		b, stop := follow(t, docs, catalog.Options{Memory: m})
		fill(t, a)
		synctest.Wait()
		remove := func(names ...string) {
			for _, name := range names {
				if err := a.RemoveBoard(t.Context(), record(a.View().Boards, catalog.At{Tenant: "acme", Name: name})); err != nil {
					t.Fatal(err)
				}
			}
		}
		remove("b0", "b1")
		synctest.Wait()
		if d := b.Doubt(); d != nil || b.View().Boards.Len() != 8 {
			t.Errorf("with the server there: %v, %d boards", d, b.View().Boards.Len())
		}
		stop()
		_ = m.Close()
		remove("b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9")
		b, _ = follow(t, docs, catalog.Options{Memory: memory(t, folder)})
		if d := b.Doubt(); d != nil || b.View().Boards.Len() != 0 {
			t.Errorf("with the server away: %v, %d boards", d, b.View().Boards.Len())
		}
	})
}

// TestAnEarlierStateIsNotObeyed puts a store in the place of another one: an earlier
// state of it, in which what was deleted is there again, and another catalog.
func TestAnEarlierStateIsNotObeyed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs, older, other := store(t), store(t), store(t)
		b := newBroken(docs)
		c, _ := follow(t, b, catalog.Options{})
		fill(t, c)
		before, err := docs.List(t.Context(), catalogSpace, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range before {
			if _, err := older.Put(t.Context(), catalogSpace, doc, 0); err != nil {
				t.Fatal(err)
			}
		}
		tenant := record(c.View().Tenants, "acme")
		for tenant.Limits.Boards = range int64(50) {
			if tenant, err = c.UpdateTenant(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.RemoveBoard(t.Context(), record(c.View().Boards, catalog.At{Tenant: "acme", Name: "b4"})); err != nil {
			t.Fatal(err)
		}
		b.cut()
		b.repair(older)
		time.Sleep(time.Minute)
		d := c.Doubt()
		if d == nil || d.Older != 11 || d.Returned != 1 || d.Missing != 0 {
			t.Fatalf("an earlier state, in which every version is lower: %+v", d)
		}
		if got := record(c.View().Tenants, "acme").Limits.Boards; got != 49 {
			t.Errorf("the tenant has the limit %d, which it had before", got)
		}
		if c.View().Boards.Len() != 9 {
			t.Errorf("%d boards, want the 9 that were not deleted", c.View().Boards.Len())
		}

		stranger, stop := follow(t, other, catalog.Options{})
		if _, err := stranger.CreateTenant(t.Context(), catalog.Tenant{Name: "other"}); err != nil {
			t.Fatal(err)
		}
		stop()
		b.cut()
		b.repair(other)
		time.Sleep(time.Minute)
		if d := c.Doubt(); d == nil || !d.Foreign {
			t.Fatalf("another catalog: %+v", d)
		}
		if _, ok := c.View().Tenants.Get("other"); ok || c.View().Boards.Len() != 9 {
			t.Error("another catalog is obeyed")
		}
		if err := c.Accept(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, ok := c.View().Tenants.Get("other"); !ok || c.View().Boards.Len() != 0 || c.Doubt() != nil {
			t.Errorf("another catalog that was accepted is not obeyed: %+v", c.Doubt())
		}
	})
}

// TestImportRefuses: what is no record is refused, before anything is written.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		c, _ := follow(t, docs, catalog.Options{})
		good := catalog.Exported{Name: "tenant/a", Data: []byte(`{"format":1,"record":{"name":"a","id":"x"}}`)}
		for _, bad := range []catalog.Exported{
			{Name: "_identity", Data: []byte(`{"format":1,"record":{}}`)},
			{Name: "module/00", Data: []byte("x")},
			{Name: "token/a", Data: good.Data},
			{Name: "tenant/a/b", Data: good.Data},
			{Name: "tenant/", Data: good.Data},
			{Name: "tenant/b", Data: []byte(`{"format":2,"record":{}}`)},
			{Name: "tenant/b", Data: []byte(`{`)},
		} {
			_, _, err := c.Import(t.Context(), []catalog.Exported{good, bad}, false)
			wantKind(t, bad.Name, err, job.Invalid)
		}
		synctest.Wait()
		if c.View().Tenants.Len() != 0 {
			t.Error("something was written beside what was refused")
		}
		if n, _, err := c.Import(t.Context(), []catalog.Exported{good}, false); n != 1 || err != nil {
			t.Errorf("a good record: %d, %v", n, err)
		}
		changed := good
		changed.Data = []byte(`{"format":1,"record":{"name":"a","id":"y"}}`)
		if n, kept, err := c.Import(t.Context(), []catalog.Exported{changed}, false); n != 0 || kept != 1 || err != nil {
			t.Errorf("a record that is there: %d, %d, %v", n, kept, err)
		}
		if n, _, err := c.Import(t.Context(), []catalog.Exported{changed}, true); n != 1 || err != nil {
			t.Errorf("a record that is replaced: %d, %v", n, err)
		}
	})
}

// TestMemoryFile: a torn or damaged line costs itself only, and the file does not grow
// without bound.
func TestMemoryFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		folder := t.TempDir()
		m := memory(t, folder)
		c, stop := follow(t, docs, catalog.Options{Memory: m})
		fill(t, c)
		tenant := record(c.View().Tenants, "acme")
		for range 3000 {
			var err error
			if tenant, err = c.UpdateTenant(t.Context(), tenant); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		_ = m.Close()
		path := filepath.Join(folder, "records.jsonl")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), "\n"); n > 1100 {
			t.Errorf("the file of 12 records has %d lines", n)
		}
		_ = memory(t, folder).Close()
		if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, data) {
			t.Errorf("a file that is as it should be was changed when it was opened (%v)", err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		beside, err := catalog.OpenMemory(folder, false, quiet())
		if err != nil {
			t.Fatal(err)
		}
		_ = beside.Close()
		if own, err := os.Stat(path); err != nil || os.SameFile(own, before) {
			t.Errorf("a process that is not alone with the folder writes to the file of another one (%v)", err)
		}
		if data, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		torn := append(data, `{"name":"board/acme/b1","ver`...)
		if err := os.WriteFile(path, torn, 0o600); err != nil {
			t.Fatal(err)
		}
		wipe(t, docs, everything)
		c, _ = follow(t, docs, catalog.Options{Memory: memory(t, folder)})
		wantAll(t, "after a torn line", c)
		if got := record(c.View().Tenants, "acme").Version; got != tenant.Version {
			t.Errorf("the tenant has the version %d, want the last one, %d", got, tenant.Version)
		}
		if now, err := os.ReadFile(path); err != nil || bytes.HasPrefix(now, torn) {
			t.Errorf("the torn line is still there (%v)", err)
		}
	})
}

// TestSilentStoreIsNoLoss: a store that does not answer is no doubt.
func TestSilentStoreIsNoLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		docs := store(t)
		b := newBroken(docs)
		c, _ := follow(t, b, catalog.Options{})
		fill(t, c)
		b.cut()
		time.Sleep(10 * time.Minute)
		if d := c.Doubt(); d != nil {
			t.Errorf("a silent store: %v", d)
		}
		wantAll(t, "a silent store", c)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Accept(ctx); err == nil {
			t.Error("a silent store was accepted")
		}
	})
}
