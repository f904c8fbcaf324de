package store

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A drain is a board of a Redis whose memory is full now and then.
type drain struct {
	*testing.T

	store  *Store
	board  *board
	client *redis.Client
	keys   *keys
	full   bool
	random *rand.Rand
	next   uint64
	tokens map[job.ID]job.Token
	script []string
}

func newDrain(t *testing.T, seed uint64) *drain {
	t.Helper()
	server := testserver.StartRedis(t, testserver.RedisOptions{Config: []string{"maxmemory-policy noeviction"}})
	d := &drain{T: t, store: openStore(t, server.Addr), random: rand.New(rand.NewPCG(seed, 0)), tokens: map[job.ID]job.Token{}}
	t.Cleanup(func() { _ = d.store.Close() })
	d.client = redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	t.Cleanup(func() { _ = d.client.Close() })
	d.open()
	var err error
	if d.board, err = d.store.board("b"); err != nil {
		t.Fatal(err)
	}
	d.keys = &d.board.opening.Load().keys
	return d
}

func (d *drain) open() {
	d.Helper()
	_, err := d.store.OpenBoard(d.Context(), driver.BoardSpec{Name: "b", MaxTombstones: 40, MaxFinals: 5})
	if err != nil {
		d.Fatalf("OpenBoard: %v", err)
	}
}

// fill has Redis be full, or not any more.
func (d *drain) fill(full bool) {
	d.Helper()
	limit := "0"
	if full {
		limit = "1mb" // less than Redis needs for itself
	}
	if err := d.client.ConfigSet(d.Context(), "maxmemory", limit).Err(); err != nil {
		d.Fatal(err)
	}
	d.full = full
}

// do applies ops, and says what became of each.
func (d *drain) do(ops ...driver.Op) []driver.Result {
	d.Helper()
	for i := range ops {
		d.next++
		if ops[i].Request == [16]byte{} {
			copy(ops[i].Request[:], fmt.Sprintf("%016x", d.next))
		}
	}
	results := d.store.Apply(d.Context(), "b", ops)
	for i := range results {
		r := &results[i]
		d.script = append(d.script, fmt.Sprintf("op %d, full: %v: %v %s", ops[i].Kind, d.full, r.Kind, r.Message))
		for _, c := range r.Claims {
			d.tokens[c.Job] = c.Token
		}
	}
	return results
}

// must applies an op that has to be done.
func (d *drain) must(op driver.Op) driver.Result {
	d.Helper()
	r := d.do(op)[0]
	if r.Kind != job.NoKind {
		d.Fatalf("op %d while Redis is full (%v): %v, %s", op.Kind, d.full, r.Kind, r.Message)
	}
	return r
}

func limited(keys ...string) (list []driver.Limit) {
	for _, key := range keys {
		list = append(list, driver.Limit{Key: key, Weight: int64(len(key)), Max: 1 << 40})
	}
	return list
}

func (d *drain) posting(id job.ID) driver.Op {
	p := &driver.Posting{ID: id, Name: "job", Details: []byte(`{"a":1}`), Digest: id}
	return driver.Op{Kind: driver.Post, Job: id, Posting: p, Event: job.Posted, Limits: limited("jobs", "bytes")}
}

func (d *drain) claiming(lease time.Duration, ids ...job.ID) driver.Op {
	spec := &driver.ClaimSpec{Owner: "w", Lease: lease, Count: len(ids), Remember: true}
	for _, id := range ids {
		d.next++
		c := driver.Candidate{Job: id, Limits: limited("claims")}
		copy(c.Nonce[:], fmt.Sprintf("%016x", d.next))
		spec.Candidates = append(spec.Candidates, c)
	}
	return driver.Op{Kind: driver.Claim, Claim: spec, Event: job.ClaimedEvent}
}

func (d *drain) held(kind driver.OpKind, id job.ID) driver.Op {
	return driver.Op{Kind: kind, Job: id, Precondition: driver.HeldByToken, Token: d.tokens[id], Event: job.OperationEvent}
}

// reconcile has our records follow what other programs did.
func (d *drain) reconcile(ids []job.ID) {
	d.Helper()
	var ops []any
	for _, id := range ids {
		ops = append(ops, reconcileOp(id.String()))
	}
	if _, _, err := d.board.script(d.Context(), d.board.opening.Load(), ops); err != nil {
		d.Fatalf("reconcile: %v", err)
	}
}

func cast(n int) (ids []job.ID) {
	for i := range n {
		ids = append(ids, numbered(i+1))
	}
	return ids
}

// TestFullIsDrained does to a board of a full Redis what has to go on, and what may not.
func TestFullIsDrained(t *testing.T) {
	t.Parallel()
	d := newDrain(t, 1)
	ids := cast(8)
	for _, id := range ids {
		d.must(d.posting(id))
	}
	d.fill(true)
	d.open() // a server starts
	refused := func(what string, r driver.Result) {
		t.Helper()
		if r.Kind != job.QuotaExceeded || !strings.Contains(r.Message, "memory") {
			t.Errorf("%s: %v, %q, want QUOTA_EXCEEDED for want of memory", what, r.Kind, r.Message)
		}
	}
	refused("a post", d.do(d.posting(numbered(100)))[0])
	if r := d.must(d.posting(ids[0])); !r.Repeated {
		t.Error("a post that was acknowledged before is not answered as one")
	}
	if r := d.must(d.claiming(time.Minute, ids[:6]...)); len(r.Claims) != 6 {
		t.Fatalf("%d claims, want 6: %+v", len(r.Claims), r.Skipped)
	}
	log := d.held(driver.Update, ids[0])
	log.Attach = []driver.Attachment{{Name: "log/1", Data: []byte("a line")}}
	refused("a line of a log", d.do(log)[0])
	status := func(n int) driver.Op {
		op, text := d.held(driver.Update, ids[0]), make([]byte, n)
		op.Status = &text
		return op
	}
	d.must(status(MaxFullGrowth))
	refused("a status that is longer by one byte than it may be", d.do(status(2*MaxFullGrowth + 1))[0])
	extend := d.held(driver.Extend, ids[0])
	extend.Lease = time.Hour
	d.must(extend)
	d.must(d.held(driver.Remove, ids[0]))
	d.must(d.held(driver.Release, ids[1]))
	d.must(d.held(driver.Trash, ids[2]))
	d.must(driver.Op{Kind: driver.Release, Job: ids[3], Precondition: driver.Held, Event: job.OperationEvent})
	d.must(driver.Op{Kind: driver.Purge, Job: ids[2], Event: job.PurgedEvent})
	kept := d.held(driver.Remove, ids[4])
	kept.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, KeepPosting: true, Data: []byte("x")}
	d.must(kept)
	d.must(d.held(driver.Trash, ids[5]))
	d.must(driver.Op{Kind: driver.Restore, Job: ids[5], Event: job.Restored})
	d.must(driver.Op{Kind: driver.Remove, Job: ids[6], Precondition: driver.Free, Event: job.OperationEvent})
	records, err := d.store.Read(t.Context(), "b", ids, driver.Details|driver.Attached)
	if err != nil || records[7].State != job.Unclaimed || records[0].State != job.Complete {
		t.Errorf("Read: %+v, %v", records, err)
	}
	counts, err := d.store.Count(t.Context(), "b")
	if err != nil || counts.Open != 4 || counts.Claimed != 0 {
		t.Errorf("Count: %+v, %v", counts, err)
	}
	audit(t.Context(), t, d.client, d.keys, 0)
	d.fill(false)
	d.must(d.posting(numbered(100)))
	audit(t.Context(), t, d.client, d.keys, 0)
}

// TestFullDocuments: of the documents of a full Redis no large one comes or grows, and
// those that are renewed or deleted go on.
func TestFullDocuments(t *testing.T) {
	t.Parallel()
	d := newDrain(t, 1)
	docs, space := d.store.Documents(), driver.Space{Board: "b", Name: "s"}
	put := func(name string, size int, version uint64) (uint64, error) {
		return docs.Put(t.Context(), space, driver.Document{Name: name, Data: make([]byte, size)}, version)
	}
	const most = MaxFullDocument
	version, err := put("a", most+1, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.fill(true)
	if version, err = put("a", most+1, version); err != nil {
		t.Errorf("a document that stays as large: %v", err)
	}
	for name, c := range map[string]struct {
		name    string
		size    int
		version uint64
	}{"a new document": {"b", most + 1, 0}, "a document that grows": {"a", most + 2, version}} {
		_, err := put(c.name, c.size, c.version)
		if job.KindOf(err) != job.QuotaExceeded || !strings.Contains(err.Error(), "memory") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := put("small", most, 0); err != nil {
		t.Errorf("a small document: %v", err)
	}
	if err := docs.Delete(t.Context(), space, "a", version); err != nil {
		t.Errorf("Delete: %v", err)
	}
}

// TestFullTakesLittle has all jobs of a full Redis be claimed and ended, and checks how much
// memory that takes beyond what there was, while nothing is forgotten yet.
func TestFullTakesLittle(t *testing.T) {
	t.Parallel()
	const jobs, most = 4000, 1 << 10 // bytes for each: docs/redis.md says so
	d := newDrain(t, 1)
	if _, err := d.store.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil { // which remembers all
		t.Fatal(err)
	}
	used := func() int64 {
		all, err := d.store.usage(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0].used
	}
	ids := cast(jobs)
	for some := range slices.Chunk(ids, 100) {
		var ops []driver.Op
		for _, id := range some {
			ops = append(ops, d.posting(id))
		}
		d.do(ops...)
	}
	posted := used()
	d.fill(true)
	for some := range slices.Chunk(ids, 100) {
		if r := d.must(d.claiming(time.Hour, some...)); len(r.Claims) != len(some) {
			t.Fatalf("%d claims, want %d", len(r.Claims), len(some))
		}
	}
	claimed := used()
	for some := range slices.Chunk(ids, 100) {
		var ops []driver.Op
		for _, id := range some {
			ops = append(ops, d.held(driver.Remove, id))
		}
		d.do(ops...)
	}
	t.Logf("for each job %d bytes more when it is claimed, %d when it has ended", (claimed-posted)/jobs, (used()-posted)/jobs)
	if took := max(claimed, used()) - posted; took > jobs*most {
		t.Errorf("it took %d bytes for each job, want at most %d", took/jobs, most)
	}
}

// TestFullPrograms runs random programs on a Redis whose memory is full half of the time,
// beside a TaskFlow, and compares the counters with the keys after each step.
func TestFullPrograms(t *testing.T) {
	t.Parallel()
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			d := newDrain(t, seed)
			ids := cast(9)
			for range 250 {
				d.step(ids)
				d.reconcile(ids)
				if !audit(t.Context(), t, d.client, d.keys, 0) {
					t.Fatalf("the last steps were:\n  %s", strings.Join(d.script[max(0, len(d.script)-12):], "\n  "))
				}
			}
		})
	}
}

// step does one thing: to Redis, as TaskFlow, or as a server of boardd.
func (d *drain) step(ids []job.ID) {
	switch d.random.IntN(10) {
	case 0:
		d.fill(!d.full)
	case 1:
		d.taskflow(ids[d.random.IntN(len(ids))])
	default:
		d.batch(ids)
	}
}

// batch applies ops on different jobs.
func (d *drain) batch(ids []job.ID) {
	d.random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	var ops []driver.Op
	for _, id := range ids[:1+d.random.IntN(5)] {
		ops = append(ops, d.op(id))
	}
	if d.random.IntN(2) == 0 {
		ops = append(ops, d.claiming(time.Duration(1+d.random.IntN(100))*time.Second, ids[5:]...))
	}
	for i, r := range d.do(ops...) {
		grows := ops[i].Kind == driver.Post || ops[i].Kind == driver.Update && len(ops[i].Attach) > 0
		switch r.Kind {
		case job.Unavailable, job.OutcomeUnknown, job.Corrupt, job.Internal:
			d.Errorf("op %d while Redis is full (%v): %v, %s", ops[i].Kind, d.full, r.Kind, r.Message)
		case job.QuotaExceeded:
			if !d.full || !grows {
				d.Errorf("op %d while Redis is full (%v): %v, %s", ops[i].Kind, d.full, r.Kind, r.Message)
			}
		default:
		}
	}
}

// op is any op on one job.
func (d *drain) op(id job.ID) driver.Op {
	kinds := []driver.OpKind{
		driver.Post, driver.Post, driver.Update, driver.Release, driver.Remove, driver.Trash, driver.Restore, driver.Purge, driver.Extend,
	}
	op := driver.Op{Kind: kinds[d.random.IntN(len(kinds))], Job: id, Event: job.OperationEvent}
	if op.Kind == driver.Post {
		op = d.posting(id)
		if d.random.IntN(4) == 0 {
			op.Hold = &driver.Hold{For: time.Duration(d.random.IntN(3)) * time.Millisecond, Always: false}
		}
		return op
	}
	if op.Kind != driver.Restore && op.Kind != driver.Purge {
		switch {
		case op.Kind == driver.Extend || d.random.IntN(3) > 0:
			if d.tokens[id].IsZero() {
				return d.posting(id)
			}
			op = d.held(op.Kind, id)
		case d.random.IntN(2) == 0:
			op.Precondition = driver.Held
		}
	}
	if op.Kind == driver.Extend {
		op.Lease = time.Minute
		return op
	}
	if d.random.IntN(3) == 0 {
		op.Attach = []driver.Attachment{{Name: "a", Data: []byte("data")}}
	}
	if op.Kind == driver.Remove {
		op.Ending = &driver.Ending{Outcome: job.Consumed}
		if d.random.IntN(2) == 0 {
			op.Ending.Keep, op.Ending.KeepPosting, op.Ending.KeepAttached = time.Hour, d.random.IntN(2) == 0, d.random.IntN(2) == 0
		}
	}
	return op
}

// taskflow does to a job what another program does, unless Redis refuses it.
func (d *drain) taskflow(id job.ID) {
	ctx, k, name := d.Context(), d.keys, id.String()
	posting, err := d.client.HGet(ctx, k.listings, name).Result()
	if err != nil {
		return
	}
	what := d.random.IntN(4)
	d.script = append(d.script, fmt.Sprintf("TaskFlow %d", what))
	switch what {
	case 0:
		if d.client.Set(ctx, k.owner(name), "conductor", time.Hour).Err() == nil {
			d.client.Set(ctx, k.modified(name), "now", 0)
		}
	case 1:
		d.client.Del(ctx, k.owner(name))
	case 2:
		d.client.Del(ctx, k.job(name)[:2]...)
		d.client.HDel(ctx, k.listings, name)
	case 3:
		if d.client.HSet(ctx, k.trash, name, posting).Err() == nil {
			d.client.Del(ctx, k.owner(name))
			d.client.HDel(ctx, k.listings, name)
		}
	}
}
