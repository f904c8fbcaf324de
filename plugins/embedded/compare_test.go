package embedded

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
	"github.com/boardd/boardd/sdk/job"
)

// TestSameAsReference does the same random things to a store and to the
// reference driver, and compares every answer and, now and then, everything
// that can be read. The store is closed and opened again meanwhile.
func TestSameAsReference(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			newComparison(t, seed).run(250)
		})
	}
}

type comparison struct {
	t      *testing.T
	random *rand.Rand
	path   string
	spec   driver.BoardSpec
	store  *Store
	model  driver.Driver

	ids    []job.ID
	tokens map[job.Token]job.Token // the model's, by the store's
	issued []issued
	past   [][2]driver.Op // store's and model's
	serial uint64
}

type issued struct {
	id    job.ID
	token job.Token
}

func newComparison(t *testing.T, seed uint64) *comparison {
	t.Helper()
	c := &comparison{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), path: t.TempDir(), tokens: map[job.Token]job.Token{{}: {}},
		spec: driver.BoardSpec{Name: "b", Settings: []byte("{}"), MaxTombstones: 1000, MaxFinals: 5, MaxFinalBytes: 200},
	}
	for range 8 {
		c.ids = append(c.ids, c.random16())
	}
	model, err := memdriver.Open(c.t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c.model = model
	t.Cleanup(func() { _ = model.Close() })
	if _, err := model.OpenBoard(c.t.Context(), c.spec); err != nil {
		t.Fatal(err)
	}
	c.reopen()
	t.Cleanup(func() { _ = c.store.Close() })
	return c
}

func (c *comparison) reopen() {
	c.t.Helper()
	if c.store != nil {
		if err := c.store.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
	c.store = openStore(c.t, c.path, options{limits: storageLimits{journalBytes: 8 << 10}})
	status, err := c.store.OpenBoard(c.t.Context(), c.spec)
	if err != nil {
		c.t.Fatal(err)
	}
	if status.Loss != "" {
		c.t.Fatalf("a loss is reported where there is none: %s", status.Loss)
	}
	c.spec.Witness = nil // the model has another
}

// openStore opens a store that logs to the test.
func openStore(t testing.TB, path string, o options) *Store {
	t.Helper()
	if o.logger == nil {
		o.logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *comparison) random16() (b [16]byte) {
	c.serial++
	binary.LittleEndian.PutUint64(b[:], c.random.Uint64())
	binary.LittleEndian.PutUint64(b[8:], c.serial)
	return b
}

func (c *comparison) run(steps int) {
	c.t.Helper()
	for step := range steps {
		if c.random.IntN(100) == 0 {
			c.reopen()
		}
		ops := make([]driver.Op, 1+c.random.IntN(3))
		used := map[job.ID]bool{}
		for i := range ops {
			for {
				ops[i] = c.op()
				if id := subjectOf(&ops[i]); !used[id] {
					used[id] = true
					break
				}
			}
		}
		c.apply(step, ops)
		if step%20 == 0 {
			c.compareAll(step)
		}
	}
	c.compareAll(steps)
	c.compareHistory()
}

func subjectOf(op *driver.Op) job.ID {
	if op.Kind == driver.Claim {
		return op.Claim.Candidates[0].Job
	}
	return op.Job
}

func (c *comparison) pick() job.ID { return c.ids[c.random.IntN(len(c.ids))] }

func (c *comparison) bytes(most int) []byte {
	b := make([]byte, c.random.IntN(most+1))
	for i := range b {
		b[i] = byte('a' + c.random.IntN(26))
	}
	return b
}

// op makes an op that is often possible and sometimes not.
func (c *comparison) op() driver.Op {
	if len(c.past) > 0 && c.random.IntN(6) == 0 { // a retry
		return c.past[c.random.IntN(len(c.past))][0]
	}
	op := driver.Op{Job: c.pick(), Request: c.random16(), Event: job.Posted, Reason: "why"}
	switch c.random.IntN(9) {
	case 0, 1:
		op.Kind = driver.Post
		op.Posting = &driver.Posting{
			ID: op.Job, Name: "n", Priority: job.Low, Book: job.Book{UUID: "u", Name: "b"}, Details: c.bytes(9), Extra: c.bytes(9),
			Digest: [16]byte{byte(c.random.IntN(2))}, Encoding: job.Msgpack,
		}
		op.Limits = c.limits(6)
	case 2, 3, 4:
		return c.claimOp()
	case 5:
		op.Kind = []driver.OpKind{driver.Extend, driver.Update}[c.random.IntN(2)]
		op.Lease, op.NoExpiry = time.Hour, c.random.IntN(4) == 0
	case 6:
		op.Kind = driver.Release
	case 7:
		op.Kind = driver.Remove
		if c.random.IntN(3) > 0 {
			op.Ending = &driver.Ending{
				Outcome: job.Consumed + job.Outcome(c.random.IntN(3)), Data: c.bytes(40), KeepPosting: c.random.IntN(2) == 0,
				KeepAttached: c.random.IntN(2) == 0, Keep: time.Duration(c.random.IntN(2)) * time.Hour,
			}
		}
	case 8:
		op.Kind = []driver.OpKind{driver.Trash, driver.Restore, driver.Purge}[c.random.IntN(3)]
	}
	c.conditions(&op)
	return op
}

// conditions adds what most ops may carry.
func (c *comparison) conditions(op *driver.Op) {
	if op.Kind != driver.Post && op.Kind < driver.Restore {
		op.Precondition = driver.Precondition(c.random.IntN(int(driver.Free) + 1))
		if c.random.IntN(2) == 0 {
			op.Precondition = driver.HeldByToken
		}
		op.Owner = []string{"", "anna", "berta"}[c.random.IntN(3)]
		for range 5 {
			if len(c.issued) > 0 && op.Token.IsZero() {
				if i := c.issued[len(c.issued)-1-c.random.IntN(min(8, len(c.issued)))]; i.id == op.Job {
					op.Token = i.token
				}
			}
		}
	}
	if c.random.IntN(5) == 0 {
		op.Version = uint64(1 + c.random.IntN(4))
	}
	if op.Kind == driver.Extend {
		return
	}
	if c.random.IntN(3) == 0 {
		status := c.bytes(20)
		op.Status = &status
	}
	if c.random.IntN(3) == 0 {
		op.Attach = []driver.Attachment{{Name: string(rune('a' + c.random.IntN(3))), Data: c.bytes(9), Delete: c.random.IntN(3) == 0}}
	}
	if op.Kind != driver.Remove && op.Kind != driver.Purge && c.random.IntN(4) == 0 { // a hold of what is gone says nothing
		op.Hold = []*driver.Hold{{}, {Always: true}, {For: time.Hour}, {Until: time.Now().Add(-time.Hour)}}[c.random.IntN(4)]
	}
}

func (c *comparison) limits(most int64) []driver.Limit {
	if c.random.IntN(3) > 0 {
		return nil
	}
	return []driver.Limit{{Key: "k", Weight: int64(c.random.IntN(3)), Max: most}, {Key: "l", Max: most}}
}

func (c *comparison) claimOp() driver.Op {
	op := driver.Op{Kind: driver.Claim, Request: c.random16(), Event: job.ClaimedEvent}
	op.Claim = &driver.ClaimSpec{
		Count: 1, Owner: []string{"anna", "berta"}[c.random.IntN(2)], Lease: time.Hour, NoExpiry: c.random.IntN(4) == 0,
		Parts: driver.Parts(c.random.IntN(4)), Remember: c.random.IntN(2) == 0, More: c.random.IntN(4) == 0,
	}
	candidate := driver.Candidate{Job: c.pick(), Nonce: c.random16(), Limits: c.limits(3)}
	if c.random.IntN(4) == 0 {
		status := c.bytes(9)
		candidate.Status = &status
	}
	op.Claim.Candidates = []driver.Candidate{candidate}
	return op
}

func (c *comparison) apply(step int, ops []driver.Op) {
	c.t.Helper()
	theirs := make([]driver.Op, len(ops))
	for i, op := range ops {
		op.Token = c.tokens[op.Token]
		theirs[i] = op
		c.past = append(c.past, [2]driver.Op{ops[i], op})
	}
	got := c.store.Apply(c.t.Context(), "b", ops)
	want := c.model.Apply(c.t.Context(), "b", theirs)
	for i := range ops {
		for n := range min(len(got[i].Claims), len(want[i].Claims)) {
			mine, other := &got[i].Claims[n], &want[i].Claims[n]
			c.tokens[mine.Token] = other.Token
			c.issued = append(c.issued, issued{mine.Job, mine.Token})
		}
		if diff := cmp.Diff(want[i], got[i], sameResult()); diff != "" {
			c.t.Fatalf("step %d, op %d %+v: answer differs from the reference (-want +got)\n%s", step, i, ops[i], diff)
		}
	}
}

// sameResult leaves out what two drivers may answer differently: texts, times
// and the numbers in a token.
func sameResult() cmp.Option {
	return cmp.Options{
		cmpopts.IgnoreFields(driver.Result{}, "Message", "At", "Remaining"),
		cmpopts.IgnoreFields(driver.Claimed{}, "At", "Token"),
		cmpopts.IgnoreFields(driver.Skipped{}, "Message"),
		cmpopts.IgnoreFields(driver.Holder{}, "Remaining", "Since"),
		cmp.Comparer(func(a, b job.Token) bool { return a.IsZero() == b.IsZero() && a.Nonce == b.Nonce }),
		cmp.Comparer(func(a, b time.Time) bool { return a.IsZero() == b.IsZero() }),
		cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < time.Minute }),
		cmpopts.EquateEmpty(),
	}
}

// compareAll compares everything that can be read.
func (c *comparison) compareAll(step int) {
	c.t.Helper()
	const parts = driver.Details | driver.Attached | driver.FinalData
	got, err := c.store.Read(c.t.Context(), "b", c.ids, parts)
	if err != nil {
		c.t.Fatal(err)
	}
	want, err := c.model.Read(c.t.Context(), "b", c.ids, parts)
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, sameResult()); diff != "" {
		c.t.Fatalf("step %d: what is read differs from the reference (-want +got)\n%s", step, diff)
	}
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs, driver.EndedJobs} {
		for _, newest := range []bool{false, true} {
			req := driver.ScanRequest{Set: set, Parts: parts, NewestFirst: newest}
			if diff := cmp.Diff(scanAll(c.t, c.model, req), scanAll(c.t, c.store, req), sameResult()); diff != "" {
				c.t.Fatalf("step %d: a scan of %+v differs from the reference (-want +got)\n%s", step, req, diff)
			}
		}
	}
	mine, err := c.store.Count(c.t.Context(), "b")
	if err != nil {
		c.t.Fatal(err)
	}
	theirs, err := c.model.Count(c.t.Context(), "b")
	if err != nil {
		c.t.Fatal(err)
	}
	if diff := cmp.Diff(theirs, mine, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(driver.Counts{}, "Tombstones")); diff != "" {
		c.t.Fatalf("step %d: the counts differ from the reference (-want +got)\n%s", step, diff)
	}
}

func scanAll(t *testing.T, d driver.Driver, req driver.ScanRequest) []driver.Record {
	t.Helper()
	var all []driver.Record
	for page, err := range d.Scan(t.Context(), "b", req) {
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Bad) > 0 {
			t.Fatalf("bad records: %v", page.Bad)
		}
		all = append(all, page.Records...)
	}
	return all
}

// compareHistory compares the changes from the beginning, which the store has
// in part only in the file.
func (c *comparison) compareHistory() {
	c.t.Helper()
	want, got := changesOf(c.t, c.model), changesOf(c.t, c.store)
	for i := range want {
		if i < len(got) && got[i].Sparse { // the reference always shows the whole posting, and all of an ending
			want[i].Sparse, want[i].Record.Posting = true, driver.Posting{ID: want[i].Job}
			if want[i].Record.State == job.Complete || want[i].Record.State == job.Unknown {
				want[i].Record.Status, want[i].Record.ModifiedAt = nil, got[i].Record.ModifiedAt
				want[i].Record.NotBefore, want[i].Record.Held = time.Time{}, false
				want[i].Record.Position = got[i].Record.Position
				want[i].Record.Final, want[i].Record.Attached = nil, nil
			}
		}
	}
	if diff := cmp.Diff(want, got, sameResult()); diff != "" {
		c.t.Fatalf("the changes differ from the reference (-want +got)\n%s", diff)
	}
	if !slices.IsSortedFunc(got, func(a, b driver.Change) int { return int(a.Position) - int(b.Position) }) {
		c.t.Error("the changes are out of order")
	}
}

func changesOf(t *testing.T, d driver.Driver) []driver.Change {
	t.Helper()
	status, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err != nil {
		t.Fatal(err)
	}
	var all []driver.Change
	for step, err := range d.Watch(t.Context(), "b", 0) {
		if err != nil || step.Resync {
			t.Fatalf("step %+v: %v", step, err)
		}
		if all = append(all, step.List...); step.Position >= status.Position {
			break
		}
	}
	return all
}
