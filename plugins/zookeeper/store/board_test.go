package store_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/zookeeper/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A desk is one host's driver on a board, with short ways to use it.
type desk struct {
	*testing.T
	driver driver.Driver
	name   string
	spec   driver.BoardSpec
	status driver.BoardStatus

	mu      sync.Mutex
	changes []driver.Change
}

// settingsOf are a backend's settings with more of them.
func settingsOf(servers []string, more map[string]any) map[string]any {
	all := map[string]any{"servers": servers}
	maps.Copy(all, more)
	return all
}

func openFor(b *testing.B, z *testserver.ZooKeeperEnsemble) driver.Driver {
	b.Helper()
	return openWith(b, settingsOf(z.Servers(), nil))
}

func openWith(t testing.TB, settings map[string]any) driver.Driver {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	d, err := store.Open(ctx, driver.Config{Settings: raw}, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() }) // some tests close it before
	return d
}

// sit opens a board at a path of TaskFlow's.
func sit(t *testing.T, d driver.Driver, path string, more map[string]any) *desk {
	t.Helper()
	settings := map[string]any{"path": path}
	maps.Copy(settings, more)
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	k := &desk{T: t, driver: d, name: "board at " + path, spec: driver.BoardSpec{Name: "board at " + path, Settings: raw}}
	k.open()
	return k
}

func (k *desk) open() {
	k.Helper()
	status, err := k.driver.OpenBoard(k.Context(), k.spec)
	if err != nil {
		k.Fatal(err)
	}
	k.status, k.spec.Witness = status, status.Witness
}

// watch gathers changes until the test ends.
func (k *desk) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			k.follow(ctx)
			if _, err := k.driver.OpenBoard(ctx, k.spec); err != nil { // as a host does
				time.Sleep(20 * time.Millisecond)
			}
		}
	}()
	k.Cleanup(func() {
		cancel()
		<-done
	})
}

func (k *desk) follow(ctx context.Context) {
	for c, err := range k.driver.Watch(ctx, k.name, k.status.Position) {
		if err != nil {
			return
		}
		k.mu.Lock()
		k.changes = append(k.changes, c.List...)
		k.mu.Unlock()
	}
}

// last returns the last change of a job that was seen.
func (k *desk) last(id job.ID) *driver.Change {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := len(k.changes) - 1; i >= 0; i-- {
		if k.changes[i].Job == id {
			return &k.changes[i]
		}
	}
	return nil
}

// sees waits until the last change of a job shows a state.
func (k *desk) sees(id job.ID, state job.State, what string) {
	k.Helper()
	k.until("a watcher sees that "+what, func() bool {
		c := k.last(id)
		return c != nil && c.Record != nil && c.Record.State == state
	})
}

func (k *desk) until(what string, done func() bool) {
	k.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.Fatalf("waited for a minute, in vain: %s", what)
		}
	}
}

func random16() (b [16]byte) {
	_, _ = rand.Read(b[:])
	return b
}

func parse(t *testing.T, uuid string) job.ID {
	t.Helper()
	id, err := job.ParseID(uuid)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (k *desk) do(op driver.Op) driver.Result {
	k.Helper()
	op.Request = random16()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r := k.driver.Apply(k.Context(), k.name, []driver.Op{op})[0]
		if r.Kind != job.Unavailable || time.Now().After(deadline) { // nothing was done
			return r
		}
	}
}

func (k *desk) must(op driver.Op) driver.Result {
	k.Helper()
	r := k.do(op)
	if r.Kind != job.NoKind {
		k.Fatalf("op %d: %v (%s)", op.Kind, r.Kind, r.Message)
	}
	return r
}

// post posts a job and returns its uuid.
func (k *desk) post(name, details string, hold *driver.Hold) job.ID {
	k.Helper()
	id := job.ID(random16())
	p := &driver.Posting{ID: id, Name: name, Encoding: job.JSON, Details: []byte(details), Digest: random16(), Extra: []byte("x")}
	k.must(driver.Op{Kind: driver.Post, Job: id, Posting: p, Hold: hold, Event: job.Posted})
	return id
}

func claimOp(id job.ID, owner string, lease time.Duration) driver.Op {
	return driver.Op{Kind: driver.Claim, Event: job.ClaimedEvent, Claim: &driver.ClaimSpec{
		Count: 1, Owner: owner, Lease: lease, Candidates: []driver.Candidate{{Job: id, Nonce: random16()}},
	}}
}

// claim claims a job; it waits until this host knows it.
func (k *desk) claim(id job.ID, owner string, lease time.Duration) driver.Claimed {
	k.Helper()
	r := k.must(claimOp(id, owner, lease))
	if len(r.Claims) != 1 {
		k.Fatalf("job %v is not claimed: %+v", id, r.Skipped)
	}
	return r.Claims[0]
}

func byToken(kind driver.OpKind, c driver.Claimed, event job.EventType) driver.Op {
	return driver.Op{Kind: kind, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token, Lease: time.Minute, Event: event}
}

func (k *desk) read(id job.ID) driver.Record {
	k.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		records, err := k.driver.Read(k.Context(), k.name, []job.ID{id}, driver.Details)
		if err == nil {
			return records[0]
		}
		if job.KindOf(err) != job.Unavailable || time.Now().After(deadline) {
			k.Fatal(err)
		}
	}
}

func (k *desk) state(id job.ID, want job.State, why string) driver.Record {
	k.Helper()
	r := k.read(id)
	if r.State != want {
		k.Errorf("%s: the job is %v, want %v", why, r.State, want)
	}
	return r
}

func (k *desk) kind(op driver.Op, want job.Kind, why string) {
	k.Helper()
	if r := k.do(op); r.Kind != want {
		k.Errorf("%s: got %v (%s), want %v", why, r.Kind, r.Message, want)
	}
}

func text(format string, args ...any) string { return fmt.Sprintf(format, args...) }
