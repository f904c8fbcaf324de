package drivertest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// long is a lease that does not run out during a check.
const long = 10 * time.Minute

// An env is a check at work: its board, and short ways to use it.
type env struct {
	T
	suite  *suite
	driver driver.Driver
	name   string // of the board
	status driver.BoardStatus
}

// boardName makes a name that no store has seen before.
func boardName(check string) string {
	nonce := random16()
	return strings.ReplaceAll(check, "/", "-") + "-" + hex.EncodeToString(nonce[:6])
}

func random16() (b [16]byte) {
	_, _ = rand.Read(b[:]) // never fails
	return b
}

func newID() job.ID { return random16() }

// openBoard opens the check's board, and drops it at the end.
func (e *env) openBoard(change func(*driver.BoardSpec)) {
	e.Helper()
	spec := e.suite.spec(e.name)
	if change != nil {
		change(&spec)
	}
	e.name = spec.Name
	status, err := e.driver.OpenBoard(e.Context(), spec)
	if err != nil {
		e.Fatalf("OpenBoard(%q): %v", spec.Name, err)
	}
	e.status = status
	d := e.driver
	e.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(e.Context()), time.Minute)
		defer cancel()
		if err := d.DropBoard(ctx, spec.Name); err != nil {
			e.Errorf("DropBoard(%q): %v", spec.Name, err)
		}
	})
}

// caps returns what the board declares.
func (e *env) caps() driver.Capabilities { return e.status.Capabilities }

// apply applies ops and checks that each was answered.
func (e *env) apply(ops ...driver.Op) []driver.Result {
	e.Helper()
	results := e.driver.Apply(e.Context(), e.name, ops)
	if len(results) != len(ops) {
		e.Fatalf("Apply of %d ops returned %d results: want one for each", len(ops), len(results))
	}
	return results
}

// do applies one op, which gets a Request if it has none.
func (e *env) do(op driver.Op) driver.Result {
	e.Helper()
	if op.Request == [16]byte{} {
		op.Request = random16()
	}
	return e.apply(op)[0]
}

// must applies one op that has to be done, and for the first time.
func (e *env) must(op driver.Op) driver.Result {
	e.Helper()
	r := e.do(op)
	if r.Kind != job.NoKind {
		e.Fatalf("%s: got %v (%s), want it done", describe(&op), r.Kind, r.Message)
	}
	if r.Repeated {
		e.Fatalf("%s: is Repeated, and it came for the first time", describe(&op))
	}
	if op.Kind != driver.Claim {
		e.checkDone(&op, &r)
	}
	return r
}

// checkDone checks what the result of every change has.
func (e *env) checkDone(op *driver.Op, r *driver.Result) {
	e.Helper()
	if r.Position == 0 || r.Version == 0 || r.At.IsZero() {
		e.Errorf("%s: done with position %d, version %d, at %v: want all three", describe(op), r.Position, r.Version, r.At)
	}
}

// refused applies one op that has to be refused with a kind.
func (e *env) refused(op driver.Op, kind job.Kind, why string) driver.Result {
	e.Helper()
	r := e.do(op)
	if r.Kind != kind {
		e.Errorf("%s: %s: got %v, want %v", describe(&op), why, outcome(&r), kind)
	}
	return r
}

// again applies an op that was done before.
func (e *env) again(op driver.Op, first *driver.Result, why string) {
	e.Helper()
	r := e.do(op)
	if r.Kind != job.NoKind || !r.Repeated {
		e.Errorf("%s: %s: got %v, want it done and Repeated", describe(&op), why, outcome(&r))
		return
	}
	if first != nil && (r.Position != first.Position || r.Version != first.Version) {
		e.Errorf("%s: %s: shows position %d and version %d, want %d and %d as first answered",
			describe(&op), why, r.Position, r.Version, first.Position, first.Version)
	}
}

// outcome says in a word what a result is.
func outcome(r *driver.Result) string {
	switch {
	case r.Kind == job.NoKind && r.Repeated:
		return "done (Repeated)"
	case r.Kind == job.NoKind:
		return "done"
	case r.Message == "":
		return r.Kind.String()
	}
	return r.Kind.String() + " (" + r.Message + ")"
}

var opNames = [...]string{"no op", "Post", "Claim", "Extend", "Update", "Release", "Remove", "SetAside", "Restore", "Purge"}

var mustNames = [...]string{"Whatever", "HeldByToken", "HeldByOwner", "Lapsed", "Held", "Free"}

func describe(op *driver.Op) string {
	name := "op " + hex.EncodeToString([]byte{byte(op.Kind)})
	if int(op.Kind) < len(opNames) {
		name = opNames[op.Kind]
	}
	if op.Must != driver.Whatever && int(op.Must) < len(mustNames) {
		name += "/" + mustNames[op.Must]
	}
	return name
}

var counter atomic.Uint64

// posting makes a posting that differs from every other.
func posting(name string) *driver.Posting {
	n := counter.Add(1)
	p := &driver.Posting{
		ID: newID(), Name: name, Encoding: job.JSON,
		Details: []byte(`{"n":` + itoa(n) + `}`), Extra: []byte("extra " + itoa(n)),
	}
	p.Digest = digest(p)
	return p
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }

// digest is one way to make Posting.Digest: any will do that differs where the
// posting does.
func digest(p *driver.Posting) [16]byte {
	h := sha256.New()
	for _, part := range [][]byte{
		p.ID[:], []byte(p.Name), {byte(p.Priority), byte(p.Encoding)}, []byte(p.Book.UUID), []byte(p.Book.Name), p.Details, p.Extra,
	} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}
	return [16]byte(h.Sum(nil))
}

func postOp(p *driver.Posting) driver.Op {
	return driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Event: job.Posted}
}

// post puts a job on the board.
func (e *env) post() *driver.Posting {
	e.Helper()
	p := posting("job")
	e.must(postOp(p))
	return p
}

// posts puts n jobs on the board, in batches.
func (e *env) posts(n int) []*driver.Posting {
	e.Helper()
	list := make([]*driver.Posting, n)
	var ops []driver.Op
	for i := range list {
		list[i] = posting("job " + itoa(uint64(i)))
		op := postOp(list[i])
		op.Request = random16()
		ops = append(ops, op)
		if len(ops) == max(1, min(128, e.caps().MaxBatch)) || i == n-1 {
			for _, r := range e.apply(ops...) {
				if r.Kind != job.NoKind {
					e.Fatalf("Post: %v", outcome(&r))
				}
			}
			ops = nil
		}
	}
	return list
}

func claimOp(owner string, lease time.Duration, ids ...job.ID) driver.Op {
	spec := &driver.ClaimSpec{Count: len(ids), Owner: owner, Lease: lease}
	for _, id := range ids {
		spec.Candidates = append(spec.Candidates, driver.Candidate{Job: id, Nonce: random16()})
	}
	return driver.Op{Kind: driver.Claim, Claim: spec, Event: job.ClaimedEvent}
}

// claim claims one job, which has to be free.
func (e *env) claim(id job.ID, owner string) driver.Claimed {
	e.Helper()
	return e.claimFor(id, owner, long)
}

func (e *env) claimFor(id job.ID, owner string, lease time.Duration) driver.Claimed {
	e.Helper()
	op := claimOp(owner, lease, id)
	r := e.must(op)
	if len(r.Claims) != 1 {
		e.Fatalf("Claim of a free job: got %d claims, passed over: %s", len(r.Claims), goneKinds(r.Gone))
	}
	c := r.Claims[0]
	if c.Job != id || c.Token.Nonce != op.Claim.Candidates[0].Nonce || c.Token.Epoch == 0 || c.Token.Generation == 0 {
		e.Errorf("Claim: got job %v with token %+v: want job %v, the candidate's nonce, an epoch and a generation", c.Job, c.Token, id)
	}
	return c
}

// taken tries to claim a job that is not free.
func (e *env) taken(op driver.Op, kind job.Kind, why string) driver.Gone {
	e.Helper()
	r := e.do(op)
	if r.Kind != job.NoKind || len(r.Claims) != 0 || len(r.Gone) != 1 {
		e.Errorf("Claim: %s: got %v with %d claims and %d passed over: want it done, without a claim, and %v",
			why, outcome(&r), len(r.Claims), len(r.Gone), kind)
		return driver.Gone{}
	}
	if r.Gone[0].Kind != kind {
		e.Errorf("Claim: %s: the job was passed over as %v (%s), want %v", why, r.Gone[0].Kind, r.Gone[0].Message, kind)
	}
	return r.Gone[0]
}

func goneKinds(list []driver.Gone) string {
	var names []string
	for _, g := range list {
		names = append(names, g.Kind.String())
	}
	return strings.Join(names, ", ")
}

func byToken(kind driver.OpKind, c driver.Claimed) driver.Op {
	return driver.Op{Kind: kind, Job: c.Job, Must: driver.HeldByToken, Token: c.Token, Lease: long, Event: eventOf[kind]}
}

var eventOf = map[driver.OpKind]job.EventType{
	driver.Post: job.Posted, driver.Claim: job.ClaimedEvent, driver.Extend: job.Extended, driver.Update: job.Operation,
	driver.Release: job.Abandoned, driver.Remove: job.ConsumedEvent, driver.SetAside: job.TrashedEvent,
	driver.Restore: job.Restored, driver.Purge: job.PurgedEvent,
}

func plain(kind driver.OpKind, id job.ID) driver.Op {
	return driver.Op{Kind: kind, Job: id, Event: eventOf[kind]}
}

// read reads one job with all its parts.
func (e *env) read(id job.ID) driver.Record {
	e.Helper()
	return e.readParts(id, driver.Details|driver.Attached|driver.FinalData)
}

func (e *env) readParts(id job.ID, parts driver.Parts) driver.Record {
	e.Helper()
	records, err := e.driver.Read(e.Context(), e.name, []job.ID{id}, parts)
	if err != nil || len(records) != 1 {
		e.Fatalf("Read of one job: got %d records and %v", len(records), err)
	}
	if records[0].Posting.ID != id {
		e.Fatalf("Read of job %v: got one with ID %v", id, records[0].Posting.ID)
	}
	return records[0]
}

// state checks where a job stands.
func (e *env) state(id job.ID, want job.State, why string) driver.Record {
	e.Helper()
	r := e.read(id)
	if r.State != want {
		e.Errorf("%s: the job is %v, want %v", why, r.State, want)
	}
	if want == job.Claimed && r.State == want && r.Holder == nil {
		e.Fatalf("%s: the job is CLAIMED and has no holder", why)
	}
	return r
}

// wait lets time pass.
func (e *env) wait(d time.Duration) {
	e.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.Context().Done():
		e.Fatalf("the check was ended while it waited")
	}
}

// lapse waits until a lease of job.MinLease that was granted before has run out.
func (e *env) lapse() {
	e.Helper()
	e.wait(job.MinLease + job.MinLease/4)
}

// eventually waits until done, for at most half a minute.
func (e *env) eventually(what string, done func() bool) {
	e.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(deadline) {
			e.Errorf("waited for half a minute, in vain: %s", what)
			return
		}
		e.wait(20 * time.Millisecond)
	}
}
