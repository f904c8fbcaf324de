// Package interop holds the Redis driver against real TaskFlow: both work one
// board at the same time, and what one does the other has to see and to respect.
package interop_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

const namespace = "octavia_jobboard"

// both are one board as each side sees it.
type both struct {
	*testing.T

	server *testserver.Redis
	python *testserver.PythonBoard
	d      driver.Driver
}

// share starts a Redis with a board that both sides work on. With notices, Redis
// tells the driver of TaskFlow's changes; without, the driver has to look.
func share(t *testing.T, notices bool) *both {
	t.Helper()
	o := testserver.RedisOptions{}
	if notices {
		o.Config = []string{"notify-keyspace-events KEA"}
	}
	b := &both{T: t, server: testserver.StartRedis(t, o)}
	b.python = testserver.StartTaskFlow(t).Connect("octavia", conf(b.server), 0)
	settings, err := json.Marshal(map[string]string{"address": b.server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	if b.d, err = store.Open(t.Context(), driver.Config{Settings: settings}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.d.Close() })
	if _, err := b.d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"` + namespace + `"}`), Window: time.Hour}); err != nil {
		t.Fatal(err)
	}
	return b
}

// conf is TaskFlow's configuration for the board.
func conf(server *testserver.Redis) testserver.Args {
	port, _ := strconv.Atoi(server.Addr[strings.LastIndexByte(server.Addr, ':')+1:])
	return testserver.Args{"board": "redis", "host": "127.0.0.1", "port": port, "namespace": namespace}
}

func random() (b [16]byte) {
	_, _ = rand.Read(b[:]) // it never fails
	return b
}

func (b *both) apply(op driver.Op) driver.Result {
	b.Helper()
	op.Request = random()
	return b.d.Apply(b.Context(), "b", []driver.Op{op})[0]
}

// done carries out an op that has to succeed.
func (b *both) done(op driver.Op) driver.Result {
	b.Helper()
	r := b.apply(op)
	if r.Kind != job.NoKind {
		b.Fatalf("op %d: %v: %s", op.Kind, r.Kind, r.Message)
	}
	return r
}

// want wants an op to be answered with a kind.
func (b *both) want(kind job.Kind, what string, op driver.Op) driver.Result {
	b.Helper()
	r := b.apply(op)
	if r.Kind != kind {
		b.Errorf("%s: %v (%s), want %v", what, r.Kind, r.Message, kind)
	}
	return r
}

func (b *both) post(name string, change func(*driver.Op)) job.ID {
	b.Helper()
	op := driver.Op{Kind: driver.Post, Posting: &driver.Posting{ID: random(), Name: name, Details: []byte(`{"a":[1,2.5]}`), Digest: random()}}
	if change != nil {
		change(&op)
	}
	b.done(op)
	return op.Posting.ID
}

// claim claims one job; with a lease of 0 the claim has none.
func (b *both) claim(id job.ID, owner string, lease time.Duration) job.Token {
	b.Helper()
	r := b.tryClaim(id, owner, lease)
	if len(r.Claims) != 1 {
		b.Fatalf("the claim of %v: %v %s, gone %+v", id, r.Kind, r.Message, r.Skipped)
	}
	return r.Claims[0].Token
}

func (b *both) tryClaim(id job.ID, owner string, lease time.Duration) driver.Result {
	b.Helper()
	return b.apply(driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{
		Candidates: []driver.Candidate{{Job: id, Nonce: random()}}, Count: 1, Owner: owner, Lease: lease, NoExpiry: lease == 0,
	}})
}

func (b *both) extend(id job.ID, token job.Token, lease time.Duration) driver.Op {
	return driver.Op{Kind: driver.Extend, Job: id, Precondition: driver.HeldByToken, Token: token, Lease: lease}
}

func (b *both) read(id job.ID) driver.Record {
	b.Helper()
	list, err := b.d.Read(b.Context(), "b", []job.ID{id}, driver.Details)
	if err != nil || len(list) != 1 {
		b.Fatalf("read %v: %v", id, err)
	}
	return list[0]
}

// scan returns the open jobs and what could not be read.
func (b *both) scan() (map[job.ID]driver.Record, []driver.BadRecord) {
	b.Helper()
	open := map[job.ID]driver.Record{}
	var bad []driver.BadRecord
	for page, err := range b.d.Scan(b.Context(), "b", driver.ScanRequest{Set: driver.OpenJobs, Parts: driver.Details}) {
		if err != nil {
			b.Fatal(err)
		}
		for i := range page.Records {
			open[page.Records[i].Posting.ID] = page.Records[i]
		}
		bad = append(bad, page.Bad...)
	}
	return open, bad
}

// ok wants that TaskFlow raised nothing.
func (b *both) ok(err error) {
	b.Helper()
	if err != nil {
		b.Error(err)
	}
}

// raises wants one of TaskFlow's exceptions.
func (b *both) raises(class, what string, err error) {
	b.Helper()
	var raised *testserver.TaskFlowError
	if !errors.As(err, &raised) || raised.Class != class {
		b.Errorf("%s: TaskFlow raises %v, want %s", what, err, class)
	}
}

// states wants that both sides see a job so. The driver may need a moment for
// what it is not told.
func (b *both) states(what string, id job.ID, want job.State, python, owner string) {
	b.Helper()
	testserver.Eventually(b, what+": the driver sees "+want.String(), func() bool {
		rec := b.read(id)
		holder := ""
		if rec.Holder != nil {
			holder = rec.Holder.Owner
		}
		return rec.State == want && holder == owner
	})
	if state, err := b.python.State(id.String()); err != nil || state != python {
		b.Errorf("%s: TaskFlow sees %s (%v), want %s", what, state, err, python)
	}
	if python == "COMPLETE" {
		return
	}
	if got, err := b.python.Owner(id.String()); err != nil || got != owner {
		b.Errorf("%s: TaskFlow sees the owner %q (%v), want %q", what, got, err, owner)
	}
}

// pythonID reads the id of a job that TaskFlow posted.
func (b *both) pythonID(j testserver.PythonJob) job.ID {
	b.Helper()
	id, err := job.ParseID(j.UUID)
	if err != nil {
		b.Fatal(err)
	}
	return id
}

// watch reports every change of the board until the test ends.
func (b *both) watch() <-chan driver.Change {
	b.Helper()
	changes := make(chan driver.Change, 1000)
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for step, err := range b.d.Watch(ctx, "b", 0) {
			if err != nil {
				return
			}
			for _, c := range step.List {
				changes <- c
			}
		}
	}()
	b.Cleanup(func() { cancel(); <-ended })
	return changes
}
