package store_test

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestHosts lets two hosts work on one board: each sees at once what the other
// does, and only one of them has a job.
func TestHosts(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	a := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	b.watch()
	id := a.post("a job", `{}`, nil)
	b.sees(id, job.Unclaimed, "the other host posted")
	if c := b.last(id); c.Event != job.Posted || c.Record.Posting.Name != "a job" || string(c.Record.Posting.Extra) != "x" {
		t.Errorf("the other host's post came as %v with %+v", c.Event, c.Record.Posting)
	}
	c := a.claim(id, "worker", time.Minute)
	b.kind(byToken(driver.Release, driver.Claimed{Job: id, Token: job.Token{Generation: 1, Epoch: 1, Nonce: random16()}}, 0), job.LeaseLost, "another token")
	b.sees(id, job.Claimed, "the other host claimed")
	if seen := b.last(id); seen.Event != job.ClaimedEvent || seen.Owner != "worker" || seen.Record.Holder == nil || seen.Record.Holder.Token != c.Token {
		t.Errorf("the other host's claim came as %v by %q with %+v", seen.Event, seen.Owner, seen.Record.Holder)
	}
	status := []byte("new status")
	update := byToken(driver.Update, c, job.OperationEvent)
	update.Status, update.Reason = &status, "for a reason"
	a.must(update)
	b.until("an update by the other host is seen", func() bool {
		seen := b.last(id)
		return seen.Event == job.OperationEvent && seen.Reason == "for a reason" && string(seen.Record.Status) == "new status"
	})
	b.must(byToken(driver.Remove, c, job.ConsumedEvent)) // a token is good on any host
	a.kind(byToken(driver.Extend, c, job.Extended), job.LeaseLost, "consumed on the other host")
	race(t, a, b)
}

// race lets two hosts claim the same jobs at once.
func race(t *testing.T, a, b *desk) {
	t.Helper()
	const jobs = 50
	ids := make([]job.ID, jobs)
	for i := range ids {
		ids[i] = a.post("raced for", `{}`, nil)
	}
	b.until("the last job is known", func() bool { return b.last(ids[jobs-1]) != nil })
	var group sync.WaitGroup
	won := [2][jobs]bool{}
	for n, k := range []*desk{a, b} {
		group.Go(func() {
			for i, id := range ids {
				r := k.driver.Apply(t.Context(), k.name, []driver.Op{claimOp(id, text("host %d", n), time.Minute)})[0]
				won[n][i] = len(r.Claims) == 1
			}
		})
	}
	group.Wait()
	for i := range ids {
		if won[0][i] == won[1][i] {
			t.Errorf("job %d was claimed by both hosts or by none: %v, %v", i, won[0][i], won[1][i])
		}
	}
}

// TestHostsExpiry lets one host see a lease run out that another one granted,
// and an extension that it was not told of.
func TestHostsExpiry(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	first := openWith(t, settingsOf(z.Servers(), nil))
	a := sit(t, first, "/taskflow/jobs", nil)
	b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	b.watch()
	id := a.post("a job", `{}`, nil)
	c := a.claim(id, "worker", 2*time.Second)
	b.sees(id, job.Claimed, "the other host claimed")
	lapsed := driver.Op{Kind: driver.Release, Job: id, Precondition: driver.Lapsed, Token: c.Token, Event: job.Expired}
	for range 3 { // extended all the time, of which b is not told
		extend := byToken(driver.Extend, c, job.Extended)
		extend.Lease = 2 * time.Second
		a.must(extend)
		if r := b.do(lapsed); r.Kind != job.Precondition || r.Remaining <= 0 {
			t.Errorf("released as lapsed, while it is extended: %v with %v left", r.Kind, r.Remaining)
		}
		time.Sleep(time.Second)
	}
	// The other host dies: nobody extends any more.
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	b.until("the lease runs out for who watched", func() bool { return b.do(lapsed).Kind == job.NoKind })
	b.claim(id, "another", time.Minute)
}

// TestRestartKeepsClaims ends the driver of a host: the claims made through it
// are the workers', and stand.
func TestRestartKeepsClaims(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	for claims, want := range map[string]job.State{"lease": job.Claimed, "session": job.Unclaimed} {
		d := openWith(t, settingsOf(z.Servers(), nil))
		a := sit(t, d, "/"+claims+"/jobs", map[string]any{"claims": claims})
		id := a.post("a job", `{}`, nil)
		c := a.claim(id, "worker", time.Minute)
		a.must(byToken(driver.Extend, c, job.Extended))
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/"+claims+"/jobs", map[string]any{"claims": claims})
		b.until("the job stands as it should", func() bool { return b.read(id).State == want })
		if r := b.do(byToken(driver.Remove, c, job.ConsumedEvent)); (r.Kind == job.NoKind) != (want == job.Claimed) {
			t.Errorf("claims = %q: after a restart the token gets %v", claims, r.Kind)
		}
	}
}

// TestRollback gives a board that remembers more than the store holds.
func TestRollback(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	a := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	id := a.post("a job", `{}`, nil)
	c := a.claim(id, "worker", time.Minute)
	other := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	a.open()
	later := append([]byte(nil), a.status.Witness...)
	position := binary.BigEndian.Uint64(later[24:])
	binary.BigEndian.PutUint64(later[24:], position+1000)
	a.spec.Witness = later
	generation := a.status.Generation
	a.open()
	if a.status.Loss == "" || a.status.Generation != generation+1 {
		t.Errorf("a store that was put back: loss %q, generation %d; want some, %d", a.status.Loss, a.status.Generation, generation+1)
	}
	a.kind(byToken(driver.Remove, c, 0), job.LeaseLost, "a token of before the loss")
	lapsed := driver.Op{Kind: driver.Release, Job: id, Precondition: driver.Lapsed, Token: c.Token}
	a.must(lapsed)
	next := a.claim(id, "worker", time.Minute)
	if next.Token.Generation != generation+1 {
		t.Errorf("the next claim is of generation %d", next.Token.Generation)
	}
	// A host that has not heard of it cannot claim by the old generation.
	newer := other.post("another job", `{}`, nil)
	if got := other.claim(newer, "worker", time.Minute); got.Token.Generation != generation+1 {
		t.Errorf("another host claims with generation %d, want %d", got.Token.Generation, generation+1)
	}
	a.open()
	if a.status.Loss != "" {
		t.Errorf("the loss is told once more: %s", a.status.Loss)
	}
}

// TestObserve looks at a board without a trace.
func TestObserve(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs2")
	z := p.z
	d := openWith(t, settingsOf(z.Servers(), nil))
	k := &desk{T: t, driver: d, name: "observed", spec: driver.BoardSpec{Name: "observed", Observe: true, Settings: []byte(`{"path":"/elsewhere/jobs"}`)}}
	k.open()
	if counts, err := d.Count(t.Context(), k.name); err != nil || counts.Open != 0 {
		t.Errorf("nothing is there yet: %+v, %v", counts, err)
	}
	k.watch()
	python := p.python.Connect("observed", testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": "/elsewhere/jobs"}, 0)
	id := parse(t, python.Post("seen", nil).UUID)
	k.sees(id, job.Unclaimed, "TaskFlow posted")
	if err := python.Claim(id.String(), "py", 0); err != nil {
		t.Fatal(err)
	}
	k.sees(id, job.Claimed, "TaskFlow claimed")
	if err := python.End("consume", id.String(), "py"); err != nil {
		t.Fatal(err)
	}
	k.sees(id, job.Complete, "TaskFlow consumed")
	c := p.connect()
	defer c.Close()
	if there, _, err := c.Exists("/elsewhere/.boardd"); err != nil || there {
		t.Errorf("an observed board was written to: %v, %v", there, err)
	}
}

// TestRestoredByBoth has two hosts put the same jobs back at once: one does, and the other
// is told that there is no such job in the trash. Nothing is broken.
func TestRestoredByBoth(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	a := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	for range 100 {
		id := a.post("wanted by two", `{}`, nil)
		a.must(driver.Op{Kind: driver.Trash, Job: id, Event: job.TrashedEvent})
		b.state(id, job.Trashed, "the other host put it into the trash")
		var group sync.WaitGroup
		var results [2]driver.Result
		for n, k := range []*desk{a, b} {
			group.Go(func() {
				op := driver.Op{Kind: driver.Restore, Job: id, Event: job.Restored, Request: random16()}
				results[n] = k.driver.Apply(t.Context(), k.name, []driver.Op{op})[0]
			})
		}
		group.Wait()
		one, other := results[0].Kind, results[1].Kind
		if one != job.NoKind {
			one, other = other, one
		}
		if one != job.NoKind || other != job.NotFound {
			t.Fatalf("restored by two hosts at once: %v (%s) and %v (%s)", one, results[0].Message, other, results[1].Message)
		}
	}
}
