package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/taskflow"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A python does to one board's keys what TaskFlow's scripts do.
type python struct {
	t         testing.TB
	client    *redis.Client
	namespace string
}

func newPython(t testing.TB, server *testserver.Redis, namespace string) *python {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	t.Cleanup(func() { _ = c.Close() })
	return &python{t, c, namespace + ":"}
}

func (p *python) key(id job.ID, name string) string { return p.namespace + id.String() + "." + name }

func (p *python) ok(cmd redis.Cmder) {
	p.t.Helper()
	if err := cmd.Err(); err != nil {
		p.t.Fatalf("%v: %v", cmd.Args(), err)
	}
}

func (p *python) post(name string) job.ID {
	p.t.Helper()
	var id job.ID
	copy(id[:], fmt.Sprintf("%016x", time.Now().UnixNano()))
	id[0]++
	ctx := p.t.Context()
	raw, err := taskflow.EncodeRedis(&taskflow.Posting{
		ID: id, Name: name, CreatedAt: time.Now(), Sequence: uint64(p.client.Incr(ctx, p.namespace+"sequence").Val()),
	})
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	p.ok(p.client.HSetNX(ctx, p.namespace+"listings", id.String(), raw))
	return id
}

// touch writes last_modified as every claim and abandon does.
func (p *python) touch(id job.ID) {
	p.t.Helper()
	raw, err := taskflow.EncodeDatetime(time.Now())
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	p.ok(p.client.Set(p.t.Context(), p.key(id, "last_modified"), raw, 0))
}

func (p *python) claim(id job.ID, who string, expiry time.Duration) {
	p.t.Helper()
	p.ok(p.client.Set(p.t.Context(), p.key(id, "owned"), who, expiry))
	p.touch(id)
}

func (p *python) abandon(id job.ID) {
	p.t.Helper()
	p.ok(p.client.Del(p.t.Context(), p.key(id, "owned")))
	p.touch(id)
}

func (p *python) consume(id job.ID) {
	p.t.Helper()
	p.ok(p.client.Del(p.t.Context(), p.key(id, "owned"), p.key(id, "last_modified")))
	p.ok(p.client.HDel(p.t.Context(), p.namespace+"listings", id.String()))
}

func (p *python) trash(id job.ID) {
	p.t.Helper()
	raw, err := p.client.HGet(p.t.Context(), p.namespace+"listings", id.String()).Result()
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	p.ok(p.client.HSet(p.t.Context(), p.namespace+"trash", id.String(), raw))
	p.touch(id)
	p.ok(p.client.Del(p.t.Context(), p.key(id, "owned")))
	p.ok(p.client.HDel(p.t.Context(), p.namespace+"listings", id.String()))
}

// A bench is one open board and ways to use it.
type bench struct {
	*testing.T

	d     driver.Driver
	board string
	spec  driver.BoardSpec
	open  driver.BoardStatus
}

func newBench(t *testing.T, server *testserver.Redis, change func(*driver.BoardSpec)) *bench {
	t.Helper()
	d := openAt(t, server.Addr)
	t.Cleanup(func() { _ = d.Close() })
	spec := driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"octavia_jobboard"}`)}
	if change != nil {
		change(&spec)
	}
	b := &bench{T: t, d: d, board: spec.Name, spec: spec}
	b.reopen()
	return b
}

func (b *bench) reopen() {
	b.Helper()
	status, err := b.d.OpenBoard(b.Context(), b.spec)
	if err != nil {
		b.Fatalf("OpenBoard: %v", err)
	}
	b.open = status
}

func (b *bench) do(op driver.Op) driver.Result {
	b.Helper()
	if op.Request == [16]byte{} {
		copy(op.Request[:], fmt.Sprintf("%016x", time.Now().UnixNano()))
	}
	return b.d.Apply(b.Context(), b.board, []driver.Op{op})[0]
}

func (b *bench) must(op driver.Op) driver.Result {
	b.Helper()
	r := b.do(op)
	if r.Kind != job.NoKind {
		b.Fatalf("op %d: %v, %s", op.Kind, r.Kind, r.Message)
	}
	return r
}

func (b *bench) post(name string) job.ID {
	b.Helper()
	p := &driver.Posting{Name: name, Details: []byte(`{"a":1}`), Digest: [16]byte{1}}
	copy(p.ID[:], fmt.Sprintf("%016x", time.Now().UnixNano()))
	b.must(driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Event: job.Posted})
	return p.ID
}

func (b *bench) tryClaim(id job.ID, owner string, lease time.Duration) driver.Result {
	b.Helper()
	spec := &driver.ClaimSpec{Owner: owner, Lease: lease, Count: 1, Candidates: []driver.Candidate{{Job: id}}}
	copy(spec.Candidates[0].Nonce[:], fmt.Sprintf("%016x", time.Now().UnixNano()))
	return b.must(driver.Op{Kind: driver.Claim, Claim: spec, Event: job.ClaimedEvent})
}

func (b *bench) claim(id job.ID, owner string) driver.Claimed {
	b.Helper()
	r := b.tryClaim(id, owner, time.Minute)
	if len(r.Claims) != 1 {
		b.Fatalf("not claimed: %+v", r.Skipped)
	}
	return r.Claims[0]
}

func (b *bench) read(id job.ID) driver.Record {
	b.Helper()
	list, err := b.d.Read(b.Context(), b.board, []job.ID{id}, driver.Details)
	if err != nil {
		b.Fatalf("Read: %v", err)
	}
	return list[0]
}

func tokenOp(kind driver.OpKind, c driver.Claimed) driver.Op {
	return driver.Op{Kind: kind, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token, Lease: time.Minute}
}

// TestClaimEndedByPython has TaskFlow do everything that it can do to a claim of
// ours, after which the token must be worth nothing.
func TestClaimEndedByPython(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	p := newPython(t, server, "octavia_jobboard")
	for name, c := range map[string]struct {
		does  func(id job.ID)
		owner string // of the job, afterwards
		state job.State
	}{
		"claims it after expiry":                 {func(id job.ID) { p.claim(id, "py", 0) }, "py", job.Claimed},
		"claims it under our name":               {func(id job.ID) { p.claim(id, "w", 0) }, "w", job.Claimed},
		"claims it under our name, with an end":  {func(id job.ID) { p.claim(id, "w", time.Minute) }, "w", job.Claimed},
		"fails to claim it again under our name": {func(id job.ID) { p.touch(id) }, "w", job.Claimed},
		"abandons it under our name":             {func(id job.ID) { p.abandon(id) }, "", job.Unclaimed},
		"consumes it under our name":             {func(id job.ID) { p.consume(id) }, "", job.Complete},
		"trashes it under our name":              {func(id job.ID) { p.trash(id) }, "", job.Trashed},
	} {
		for _, kind := range []driver.OpKind{driver.Extend, driver.Update, driver.Release, driver.Remove, driver.Trash} {
			claim := b.claim(b.post("job"), "w")
			c.does(claim.Job)
			want := job.LeaseLost
			if c.state == job.Complete {
				want = job.NotFound
			}
			if kind == driver.Update { // half of them are reconciled by a read's view first
				b.read(claim.Job)
			}
			r := b.do(tokenOp(kind, claim))
			if r.Kind != want || r.Owner != c.owner {
				t.Errorf("Python %s, and op %d by our token got %v with owner %q, want %v with %q", name, kind, r.Kind, r.Owner, want, c.owner)
			}
			rec := b.read(claim.Job)
			if rec.State != c.state || rec.Holder != nil && (!rec.Holder.Foreign || rec.Holder.Owner != c.owner) {
				t.Errorf("Python %s, and the job is %v with holder %+v, want %v", name, rec.State, rec.Holder, c.state)
			}
		}
	}
}

// TestPythonExtends has TaskFlow move the end of our lease, which its
// extend_expiry does whoever holds the job.
func TestPythonExtends(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	p := newPython(t, server, "octavia_jobboard")
	c := b.claim(b.post("job"), "w")
	p.ok(p.client.PExpire(t.Context(), p.key(c.Job, "owned"), time.Hour))
	if h := b.read(c.Job).Holder; h == nil || h.Remaining < 30*time.Minute || h.Token != c.Token {
		t.Errorf("Python extended the lease to an hour, and the holder is %+v", h)
	}
	b.must(tokenOp(driver.Update, c))
	p.ok(p.client.PExpire(t.Context(), p.key(c.Job, "owned"), -time.Second)) // which deletes it
	if r := b.do(tokenOp(driver.Update, c)); r.Kind != job.LeaseLost {
		t.Errorf("Python ended the lease, and the token got %v", r.Kind)
	}
	lapsed := tokenOp(driver.Release, c)
	lapsed.Precondition = driver.Lapsed
	b.must(lapsed)
}

// TestHeld checks that a job that may not run yet looks claimed to TaskFlow.
func TestHeld(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	p := newPython(t, server, "octavia_jobboard")
	owner := func(id job.ID) string { return p.client.Get(t.Context(), p.key(id, "owned")).Val() }
	id := b.post("job")
	hold := driver.Op{Kind: driver.Update, Job: id, Hold: &driver.Hold{Always: true}}
	b.must(hold)
	if got := owner(id); got != "boardd:hold" {
		t.Errorf("a held job has the owner %q", got)
	}
	hold.Hold, hold.Request = &driver.Hold{For: time.Hour}, [16]byte{}
	b.must(hold)
	if left := p.client.PTTL(t.Context(), p.key(id, "owned")).Val(); left <= 0 || left > time.Hour {
		t.Errorf("a job held for an hour looks claimed for %v", left)
	}
	if rec := b.read(id); rec.State != job.Unclaimed || rec.NotBefore.IsZero() {
		t.Errorf("a held job is %v, not before %v", rec.State, rec.NotBefore)
	}
	hold.Hold, hold.Request = &driver.Hold{}, [16]byte{}
	b.must(hold)
	if got := owner(id); got != "" {
		t.Errorf("a job that is not held any more has the owner %q", got)
	}
	c := b.claim(id, "w")
	release := tokenOp(driver.Release, c)
	release.Hold = &driver.Hold{For: time.Hour}
	b.must(release)
	if got := owner(id); got != "boardd:hold" {
		t.Errorf("a job given back for later has the owner %q", got)
	}
	if r := b.do(driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{Owner: "boardd:hold", Lease: time.Minute, Count: 1}}); r.Kind != job.Invalid {
		t.Errorf("a claim under the name of a hold: %v", r.Kind)
	}
}

// A view is what a watcher knows.
type view struct {
	mu   sync.Mutex
	jobs map[job.ID]driver.Change
}

func (b *bench) watch() *view {
	v := &view{jobs: map[job.ID]driver.Change{}}
	ctx, cancel := context.WithCancel(b.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for changes, err := range b.d.Watch(ctx, b.board, b.open.Position) {
			if err != nil {
				return
			}
			v.mu.Lock()
			for _, c := range changes.List {
				if old, ok := v.jobs[c.Job]; ok && old.Position > c.Position {
					b.Errorf("a change at %d came after one at %d", c.Position, old.Position)
				}
				v.jobs[c.Job] = c
			}
			v.mu.Unlock()
		}
	})
	b.Cleanup(func() { cancel(); done.Wait() })
	return v
}

func (v *view) state(id job.ID) (job.State, string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c, ok := v.jobs[id]
	if !ok || c.Record == nil {
		return job.Unknown, ""
	}
	owner := ""
	if c.Record.Holder != nil {
		owner = c.Record.Holder.Owner
	}
	return c.Record.State, owner
}

func (b *bench) eventually(what string, done func() bool) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("waited for a minute, in vain: %s", what)
		}
	}
}

// TestForeignChanges checks that watchers see what TaskFlow does, with and
// without keyspace notifications, and on a board that is only observed.
func TestForeignChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config  []string
		observe bool
		others  int // jobs on the board: with many, claims are searched for among the keys
	}{
		"by searching the jobs": {nil, false, 0},
		"by searching the keys": {nil, false, 100},
		"by notifications":      {[]string{"notify-keyspace-events KA"}, false, 0},
		"observed":              {nil, true, 0},
		"observed and notified": {[]string{"notify-keyspace-events KA"}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.StartRedis(t, testserver.RedisOptions{Config: c.config})
			p := newPython(t, server, "octavia_jobboard")
			early := p.post("there before")
			b := newBench(t, server, func(s *driver.BoardSpec) { s.Observe = c.observe })
			for page, err := range b.d.Scan(t.Context(), b.board, driver.ScanRequest{}) {
				if err != nil || len(page.Records) != 1 || page.Records[0].Posting.ID != early || page.Records[0].Posting.Name != "there before" {
					t.Fatalf("the scan found %+v, %v", page, err)
				}
			}
			for range c.others {
				b.post("another")
			}
			v := b.watch()
			is := func(id job.ID, state job.State, owner string) func() bool {
				return func() bool { s, o := v.state(id); return s == state && o == owner }
			}
			id := p.post("python's")
			b.eventually("a post", is(id, job.Unclaimed, ""))
			p.claim(id, "py", 0)
			b.eventually("a claim", is(id, job.Claimed, "py"))
			p.abandon(id)
			b.eventually("an abandon", is(id, job.Unclaimed, ""))
			b.eventually("a claim that ends", func() bool {
				if p.client.Exists(t.Context(), p.key(id, "owned")).Val() == 0 { // anew, should nobody have looked in time
					p.claim(id, "py2", 1500*time.Millisecond)
				}
				return is(id, job.Claimed, "py2")()
			})
			b.eventually("its end", is(id, job.Unclaimed, ""))
			p.claim(id, "py3", 0)
			p.consume(id)
			b.eventually("a consumption", is(id, job.Complete, ""))
			p.trash(early)
			b.eventually("a trashing", is(early, job.Trashed, ""))
		})
	}
}

// TestObserveWritesNothing looks at every command that an observed board sent.
func TestObserveWritesNothing(t *testing.T) {
	t.Parallel()
	for name, config := range map[string][]string{"alone": nil, "with notifications": {"notify-keyspace-events KA"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			observeAlone(t, testserver.StartRedis(t, testserver.RedisOptions{Config: config}))
		})
	}
}

func observeAlone(t *testing.T, server *testserver.Redis) {
	t.Helper()
	p := newPython(t, server, "octavia_jobboard")
	id := p.post("python's")
	shown := monitor(t, server)
	b := newBench(t, server, func(s *driver.BoardSpec) { s.Observe = true })
	v := b.watch()
	b.eventually("what is there", func() bool { s, _ := v.state(id); return s == job.Unclaimed })
	b.read(id)
	if _, err := b.d.Count(t.Context(), b.board); err != nil {
		t.Errorf("Count: %v", err)
	}
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs, driver.EndedJobs} {
		for _, err := range b.d.Scan(t.Context(), b.board, driver.ScanRequest{Set: set}) {
			if err != nil {
				t.Errorf("Scan: %v", err)
			}
		}
	}
	space := driver.Space{Board: b.board, Name: "settings"}
	if _, err := b.d.Documents().List(t.Context(), space, "", 0); err != nil {
		t.Errorf("List: %v", err)
	}
	if r := b.do(driver.Op{Kind: driver.Update, Job: id}); r.Kind != job.Precondition {
		t.Errorf("an update of an observed board: %v", r.Kind)
	}
	commands := shown()
	for _, c := range commands {
		if !harmless[c.name] || c.name == "config" && !strings.EqualFold(c.words[0], "get") {
			t.Errorf("an observed board sent a command that is not known to write nothing: %s", c.text)
		}
	}
	if len(commands) < 20 {
		t.Errorf("MONITOR showed %d commands", len(commands))
	}
}

// harmless are commands that write nothing.
var harmless = map[string]bool{
	"hello": true, "client": true, "info": true, "config": true, "select": true, "ping": true, "time": true, "multi": true, "exec": true,
	"get": true, "mget": true, "pttl": true, "hmget": true, "hget": true, "hgetall": true, "hlen": true, "hscan": true, "llen": true, "zcard": true,
	"zrangebyscore": true, "zrevrangebyscore": true, "zrangebylex": true, "xrange": true,
	"subscribe": true, "unsubscribe": true, "psubscribe": true, "punsubscribe": true,
}

// TestBadPostings checks that a posting that cannot be read is reported, left
// alone, and hides nothing.
func TestBadPostings(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	p := newPython(t, server, "octavia_jobboard")
	good := p.post("good")
	listings := p.namespace + "listings"
	p.ok(p.client.HSet(t.Context(), listings, "no uuid", "x", "0b1d2c3d-0000-4000-8000-000000000001", "not msgpack", "0b1d2c3d-0000-4000-8000-000000000002", "\x80"))
	b := newBench(t, server, nil)
	b.watch()
	b.eventually("the search reconciles the rest", func() bool {
		n, err := p.client.HGet(t.Context(), p.namespace+"boardd:head", "open").Int()
		return err == nil && n == 3
	})
	records, bad := 0, 0
	for page, err := range b.d.Scan(t.Context(), b.board, driver.ScanRequest{}) {
		if err != nil {
			t.Fatalf("Scan: %v", err)
		}
		records += len(page.Records)
		bad += len(page.Bad)
	}
	counts, err := b.d.Count(t.Context(), b.board)
	if err != nil || records != 1 || bad != 3 || counts.Open != 1 || counts.Bad != 3 {
		t.Errorf("one good posting and three bad ones: found %d and %d, counted %+v, %v", records, bad, counts, err)
	}
	b.claim(good, "w")
	if n := p.client.HLen(t.Context(), listings).Val(); n != 4 {
		t.Errorf("of 4 postings %d are left", n)
	}
}
