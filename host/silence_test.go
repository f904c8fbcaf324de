package host_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host"
	"github.com/boardd/boardd/host/admin"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// mutable is a store whose documents answer only while it is not muted.
type mutable struct {
	driver.Driver

	documents *mutableDocuments
}

func (m *mutable) Documents() driver.Documents { return m.documents }

type mutableDocuments struct {
	driver.Documents

	mu    sync.Mutex
	muted context.Context // over: nothing is answered any more
	mute  context.CancelFunc
}

func (d *mutableDocuments) speak() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.muted, d.mute = context.WithCancel(context.Background())
}

func (d *mutableDocuments) state() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.muted
}

func (d *mutableDocuments) Get(ctx context.Context, space driver.Space, name string) (driver.Document, error) {
	if d.state().Err() != nil {
		return driver.Document{}, job.Unavailable
	}
	return d.Documents.Get(ctx, space, name)
}

func (d *mutableDocuments) List(ctx context.Context, space driver.Space, after string, limit int) ([]driver.Document, error) {
	if d.state().Err() != nil {
		return nil, job.Unavailable
	}
	return d.Documents.List(ctx, space, after, limit)
}

func (d *mutableDocuments) Put(ctx context.Context, space driver.Space, doc driver.Document, ifVersion uint64) (uint64, error) {
	if d.state().Err() != nil {
		return 0, job.Unavailable
	}
	return d.Documents.Put(ctx, space, doc, ifVersion)
}

func (d *mutableDocuments) Watch(ctx context.Context, space driver.Space) iter.Seq2[driver.DocumentChange, error] {
	muted := d.state()
	return func(yield func(driver.DocumentChange, error) bool) {
		if muted.Err() != nil {
			yield(driver.DocumentChange{}, job.Unavailable)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(muted, cancel)()
		d.Documents.Watch(ctx, space)(yield)
	}
}

// TestNoAnswerFromTheCatalog: a host whose catalog does not answer lets tokens of the
// catalog in for a minute, those of its configuration for good, and a token that it knew
// to be revoked never.
func TestNoAnswerFromTheCatalog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		drivers := oneStore(t, false)
		documents := &mutableDocuments{}
		documents.speak()
		drivers["memory"] = drivers["memory"].Wrapped(func(d driver.Driver) driver.Driver {
			if documents.Documents == nil {
				documents.Documents = d.Documents()
			}
			return &mutable{d, documents}
		})
		h, _ := open(t, host.Config{Config: cataloged(""), Drivers: drivers})
		ctx := t.Context()
		op := operator(t, h)
		if _, err := op.CreateTenant(ctx, "acme", config.Limits{}); err != nil {
			t.Fatal(err)
		}
		var secrets [2]string
		for i, name := range []string{"kept", "revoked"} {
			var err error
			if _, secrets[i], err = op.CreateToken(ctx, admin.NewToken{Tenant: "acme", Name: name, Roles: []string{"worker"}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		enters := func(i int, want error) {
			t.Helper()
			if _, err := h.Login(ctx, secrets[i]); !errors.Is(err, want) {
				t.Errorf("token %d: %v, want %v", i, err, want)
			}
		}
		enters(0, nil)
		enters(1, nil)
		if err := op.RevokeToken(ctx, "acme", "revoked"); err != nil {
			t.Fatal(err)
		}
		enters(1, job.Unauthenticated)

		documents.mute()
		time.Sleep(catalog.MaxSilence - 10*time.Second)
		enters(0, nil)
		enters(1, job.Unauthenticated)
		time.Sleep(20 * time.Second)
		enters(0, job.Unavailable)
		if _, err := h.Login(ctx, operatorSecret); err != nil {
			t.Errorf("a token of the configuration: %v", err)
		}
		documents.speak()
		time.Sleep(10 * time.Second)
		enters(0, nil)
		enters(1, job.Unauthenticated)
	})
}
