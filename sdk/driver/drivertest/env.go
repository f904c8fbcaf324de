package drivertest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
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

// settled is do, said again as long as its outcome is unknown: then it tells what came of it.
func (e *env) settled(op driver.Op) driver.Result {
	e.Helper()
	op.Request = random16()
	r := e.do(op)
	for r.Kind == job.OutcomeUnknown {
		r = e.do(op)
	}
	return r
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
	if op.Kind != driver.Claim && op.Kind != driver.Tally {
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
