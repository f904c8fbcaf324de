package drivertest

import (
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
	return e.granted(claimOp(owner, lease, id))
}

// granted makes a claim of one free job.
func (e *env) granted(op driver.Op) driver.Claimed {
	e.Helper()
	id := op.Claim.Candidates[0].Job
	r := e.must(op)
	if len(r.Claims) != 1 {
		e.Fatalf("Claim of a free job: got %d claims, passed over: %s", len(r.Claims), goneKinds(r.Skipped))
	}
	c := r.Claims[0]
	if c.Job != id || c.Token.Nonce != op.Claim.Candidates[0].Nonce || c.Token.Epoch == 0 || c.Token.Generation == 0 {
		e.Errorf("Claim: got job %v with token %+v: want job %v, the candidate's nonce, an epoch and a generation", c.Job, c.Token, id)
	}
	return c
}

// taken tries to claim a job that is not free.
func (e *env) taken(op driver.Op, kind job.Kind, why string) driver.Skipped {
	e.Helper()
	r := e.do(op)
	if r.Kind != job.NoKind || len(r.Claims) != 0 || len(r.Skipped) != 1 {
		e.Errorf("Claim: %s: got %v with %d claims and %d passed over: want it done, without a claim, and %v",
			why, outcome(&r), len(r.Claims), len(r.Skipped), kind)
		return driver.Skipped{}
	}
	if r.Skipped[0].Kind != kind {
		e.Errorf("Claim: %s: the job was passed over as %v (%s), want %v", why, r.Skipped[0].Kind, r.Skipped[0].Message, kind)
	}
	return r.Skipped[0]
}

func goneKinds(list []driver.Skipped) string {
	var names []string
	for _, g := range list {
		names = append(names, g.Kind.String())
	}
	return strings.Join(names, ", ")
}

func byToken(kind driver.OpKind, c driver.Claimed) driver.Op {
	return driver.Op{Kind: kind, Job: c.Job, Precondition: driver.HeldByToken, Token: c.Token, Lease: long, Event: eventOf[kind]}
}

var eventOf = map[driver.OpKind]job.EventType{
	driver.Post: job.Posted, driver.Claim: job.ClaimedEvent, driver.Extend: job.Extended, driver.Update: job.OperationEvent,
	driver.Release: job.Abandoned, driver.Remove: job.ConsumedEvent, driver.Trash: job.TrashedEvent,
	driver.Restore: job.Restored, driver.Purge: job.PurgedEvent,
}

func plain(kind driver.OpKind, id job.ID) driver.Op {
	return driver.Op{Kind: kind, Job: id, Event: eventOf[kind]}
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

var opNames = [...]string{"no op", "Post", "Claim", "Extend", "Update", "Release", "Remove", "Trash", "Restore", "Purge", "Refuse"}

var mustNames = [...]string{"Whatever", "HeldByToken", "HeldByOwner", "Lapsed", "Held", "Free"}

func describe(op *driver.Op) string {
	name := "op " + hex.EncodeToString([]byte{byte(op.Kind)})
	if int(op.Kind) < len(opNames) {
		name = opNames[op.Kind]
	}
	if op.Precondition != driver.Whatever && int(op.Precondition) < len(mustNames) {
		name += "/" + mustNames[op.Precondition]
	}
	return name
}
