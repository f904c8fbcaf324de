package store_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestClaimBesideTrouble: where one candidate of a claim fails, those that were granted
// beside it are told, and nobody hears that nothing was changed.
func TestClaimBesideTrouble(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	op := driver.Op{Kind: driver.Claim, Event: job.ClaimedEvent, Claim: &driver.ClaimSpec{Count: 3, Owner: "w", Lease: time.Minute}}
	var ids []job.ID
	for range 3 {
		id := k.post("a job", `{}`, nil)
		ids = append(ids, id)
		op.Claim.Candidates = append(op.Claim.Candidates, driver.Candidate{Job: id, Nonce: random16()})
	}
	c, _, err := zk.Connect(z.Servers(), 10*time.Second, zk.WithLogger(quiet{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	spoilt := "/taskflow/.boardd/jobs/jobs/" + text("%x", ids[0][0]>>4) + "/" + ids[0].String()
	if _, err := c.Set(spoilt, []byte("no record"), -1); err != nil {
		t.Fatal(err)
	}
	r := k.driver.Apply(t.Context(), k.name, []driver.Op{op})[0]
	if r.Kind != job.NoKind || len(r.Claims) != 2 {
		t.Errorf("a claim of three, of which one cannot be read: %v (%s), with %d claims; want the other two", r.Kind, r.Message, len(r.Claims))
	}
	for _, id := range ids[1:] {
		k.state(id, job.Claimed, "beside the one that cannot be read")
	}
}

// TestLeaseAge: a host that finds a claim which another one has extended, or that was
// away, knows by the leader's clock how much of the lease has passed.
func TestLeaseAge(t *testing.T) {
	t.Parallel()
	const lease, wait, late = time.Minute, 3 * time.Second, time.Second
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	a := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	b := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	b.watch()
	id := a.post("a job", `{}`, nil)
	claimed := a.claim(id, "worker", 10*time.Second)
	b.sees(id, job.Claimed, "the other host claimed")
	before := time.Now()
	a.must(byToken(driver.Extend, claimed, job.Extended))
	after := time.Now()
	a.until("some of the lease has passed", func() bool { return time.Since(after) > wait })
	newcomer := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	for who, k := range map[string]*desk{"a host that was not told of the extension": b, "a host that was away": newcomer} {
		passed := time.Since(after)
		left := k.read(id).Holder.Remaining
		if most := lease - passed + late; left > most {
			t.Errorf("%s: %v of the lease are left, want at most %v", who, left, most)
		}
		if least := lease - time.Since(before); left < least {
			t.Errorf("%s: %v of the lease are left, want at least %v", who, left, least)
		}
	}
}
