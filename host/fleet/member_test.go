package fleet_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/host/fleet"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// documents is one server's way to a store, which can be cut.
type documents struct {
	driver.Documents

	cut    atomic.Bool
	behind atomic.Int64 // by how much the server's clock is behind the store's
}

var errCut = &job.Error{Kind: job.Unavailable, Err: errors.New("cut")}

func (d *documents) Put(ctx context.Context, s driver.Space, doc driver.Document, v uint64) (uint64, error) {
	if d.cut.Load() {
		return 0, errCut
	}
	if !doc.Expires.IsZero() {
		doc.Expires = doc.Expires.Add(-time.Duration(d.behind.Load()))
	}
	return d.Documents.Put(ctx, s, doc, v)
}

func (d *documents) List(ctx context.Context, s driver.Space, after string, limit int) ([]driver.Document, error) {
	if d.cut.Load() {
		return nil, errCut
	}
	return d.Documents.List(ctx, s, after, limit)
}

// server is a member that runs.
type server struct {
	*fleet.Member

	way  *documents
	log  *bytes.Buffer
	stop context.CancelFunc
}

// live are the servers that one knows to live.
func (s *server) live() (list []string) {
	for _, o := range s.Servers() {
		if o.Live {
			list = append(list, o.ID)
		}
	}
	slices.Sort(list)
	return list
}

// start has servers run on one store until the test ends.
func start(t *testing.T, ids ...string) map[string]*server {
	t.Helper()
	store, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}"), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	servers := map[string]*server{}
	var wg sync.WaitGroup
	for _, id := range ids {
		ctx, stop := context.WithCancel(t.Context())
		way := &documents{Documents: store.Documents()}
		log := &bytes.Buffer{}
		s := &server{way: way, log: log, stop: stop, Member: fleet.New(fleet.Options{
			Documents: way, Logger: slog.New(slog.NewTextHandler(log, nil)), Looked: func() {},
			Self: func() fleet.Word { return fleet.Word{ID: id, Advertise: "http://" + id + ":1", State: fleet.Serving} },
		})}
		servers[id] = s
		wg.Go(func() { s.Run(ctx) })
	}
	t.Cleanup(func() {
		for _, s := range servers {
			s.stop()
		}
		wg.Wait()
		_ = store.Close()
	})
	return servers
}

func wantLive(t *testing.T, s *server, want ...string) {
	t.Helper()
	if got := s.live(); !slices.Equal(got, want) {
		t.Errorf("there live %v, want %v", got, want)
	}
}

// TestMembers has three servers find each other and agree on a key; one of them is cut
// from the store for a while, and one is told to end.
func TestMembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := start(t, "a", "b", "c")
		time.Sleep(3500 * time.Millisecond)
		header, _, err := servers["a"].Key().Seal(fleet.Passed{From: servers["a"].Boot(), Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		for id, s := range servers {
			wantLive(t, s, "a", "b", "c")
			if !s.Known() {
				t.Errorf("%s does not know the fleet", id)
			}
			if _, _, err := s.Key().Open(header); err != nil {
				t.Errorf("%s has another key: %v", id, err)
			}
			if !s.Fresh(servers["a"].Boot(), 1) || s.Fresh("stranger", 1) {
				t.Errorf("%s lets in whom it does not know, or not whom it does", id)
			}
		}
		servers["c"].way.cut.Store(true)
		time.Sleep(7 * time.Second)
		wantLive(t, servers["a"], "a", "b")
		wantLive(t, servers["c"], "a", "b", "c") // its last view stands
		servers["c"].way.cut.Store(false)
		time.Sleep(9 * time.Second)
		wantLive(t, servers["a"], "a", "b")
		time.Sleep(4 * time.Second)
		wantLive(t, servers["a"], "a", "b", "c")
		servers["b"].stop()
		time.Sleep(1500 * time.Millisecond)
		wantLive(t, servers["a"], "a", "c")
	})
}

func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := start(t, "a", "b")
		time.Sleep(3500 * time.Millisecond)
		if err := servers["a"].Drain(t.Context(), servers["b"].Boot(), false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		state := func() fleet.State { return servers["a"].Servers()[1].State }
		if servers["a"].Drained() || !servers["b"].Drained() || state() != fleet.Draining {
			t.Errorf("a is drained: %v, b is: %v, and a takes b for %s", servers["a"].Drained(), servers["b"].Drained(), state())
		}
		for range 2 { // the second time there is nothing to be undone
			if err := servers["a"].Drain(t.Context(), servers["b"].Boot(), true); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		if servers["b"].Drained() || state() != fleet.Serving {
			t.Errorf("b is drained: %v, and a takes it for %s", servers["b"].Drained(), state())
		}
		for id, want := range map[string]int{"a": 0, "b": 2} { // it says so once each time
			servers[id].stop()
			synctest.Wait()
			if log := servers[id].log.String(); strings.Count(log, "this server is drained") != want {
				t.Errorf("%s logged, of %d lines about its drain:\n%s", id, want, log)
			}
		}
	})
}

// TestAClockIsBehind: a server whose words are gone for the store as soon as they are said finds
// its fleet, and is found.
func TestAClockIsBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := start(t, "a", "b")
		servers["b"].way.behind.Store(int64(5 * time.Hour))
		time.Sleep(time.Minute)
		for _, s := range servers {
			if wantLive(t, s, "a", "b"); !s.Known() {
				t.Error("a server does not know its fleet")
			}
		}
	})
}

// TestDrainedForLong: what drains a server does not lapse while it lives, and does afterwards.
func TestDrainedForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		servers := start(t, "a", "b")
		b, docs, drain := servers["b"], servers["a"].way, driver.Document{Name: "drain/" + servers["b"].Boot(), Data: []byte("{}")}
		drain.Expires = time.Now().Add(time.Hour) // as it stands when it is nearly over
		if _, err := docs.Put(t.Context(), driver.Space{Name: "fleet"}, drain, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		doc, err := docs.Get(t.Context(), driver.Space{Name: "fleet"}, drain.Name)
		if err != nil || !b.Drained() || time.Until(doc.Expires) < 20*24*time.Hour {
			t.Errorf("after two hours b is drained: %v, until %v; %v", b.Drained(), doc.Expires, err)
		}
		if err := servers["a"].Drain(t.Context(), b.Boot(), true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if b.Drained() {
			t.Error("it is drained after that was taken back")
		}
	})
}

func TestStoreIdentity(t *testing.T) {
	t.Parallel()
	open := func() driver.Documents {
		store, err := memdriver.Program().Open(t.Context(), driver.Config{Settings: []byte("{}"), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store.Documents()
	}
	one, other := open(), open()
	if id, err := fleet.StoreIdentity(t.Context(), one, false); err != nil || id != "" {
		t.Errorf("a store that may not be written to has the identity %q, %v", id, err)
	}
	var ids []string
	for _, store := range []driver.Documents{one, one, other} {
		id, err := fleet.StoreIdentity(t.Context(), store, true)
		if err != nil || id == "" {
			t.Fatalf("identity %q, %v", id, err)
		}
		ids = append(ids, id)
	}
	if ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("one store, the same one and another one have the identities %q", ids)
	}
	if id, err := fleet.StoreIdentity(t.Context(), one, false); err != nil || id != ids[0] {
		t.Errorf("read only: %q, %v, want %q", id, err, ids[0])
	}
}
