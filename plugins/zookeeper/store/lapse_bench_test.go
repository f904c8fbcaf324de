package store_test

import (
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var received = regexp.MustCompile(`zk_packets_received\s+(\d+)`)

// packets returns how many requests a server has had.
func packets(b *testing.B, z *testserver.ZooKeeperEnsemble) int {
	b.Helper()
	m := received.FindStringSubmatch(z.Word(0, "mntr"))
	if m == nil {
		b.Fatal("mntr does not say how many packets were received")
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkExtensions has one host extend claims all the time, and another one
// find out at the end of each lease, as a host does, that it may not end them.
// other-requests/s is what that costs: the requests of the second host. 10,000
// claims of 30 s cost five times as much.
func BenchmarkExtensions(b *testing.B) {
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	const claims, lease = 1000, 15 * time.Second
	first, second := openFor(b, z), openFor(b, z)
	spec := driver.BoardSpec{Name: "b", Settings: []byte(`{"path":"/taskflow/jobs"}`)}
	for _, d := range []driver.Driver{first, second} {
		if _, err := d.OpenBoard(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
	}
	tokens := make([]driver.Claimed, claims)
	var group sync.WaitGroup
	for i := range tokens {
		group.Go(func() {
			id := job.ID(random16())
			p := &driver.Posting{ID: id, Name: "x", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
			first.Apply(b.Context(), "b", []driver.Op{{Kind: driver.Post, Job: id, Posting: p, Request: random16()}})
			if r := first.Apply(b.Context(), "b", []driver.Op{claimOp(id, "w", lease)}); len(r[0].Claims) == 1 {
				tokens[i] = r[0].Claims[0]
			}
		})
	}
	group.Wait()
	time.Sleep(time.Second)
	begun, before, extended := time.Now(), packets(b, z), 0
	due := make([]time.Time, claims)
	for i := range due {
		due[i] = begun.Add(lease)
	}
	for b.Loop() {
		for end := time.Now().Add(2 * lease); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			extended += extend(b, first, tokens, lease, begun, extended)
			for i := range tokens {
				if time.Now().Before(due[i]) {
					continue
				}
				op := driver.Op{Kind: driver.Release, Job: tokens[i].Job, Must: driver.Lapsed, Token: tokens[i].Token, Request: random16()}
				r := second.Apply(b.Context(), "b", []driver.Op{op})[0]
				if r.Kind != job.Precondition {
					b.Fatalf("a claim that is extended was ended: %v (%s)", r.Kind, r.Message)
				}
				due[i] = time.Now().Add(r.Left)
			}
		}
	}
	seconds := time.Since(begun).Seconds()
	b.ReportMetric(float64(packets(b, z)-before-extended)/seconds, "other-requests/s")
	b.ReportMetric(float64(extended)/seconds, "extensions/s")
	b.ReportMetric(0, "ns/op")
}

// extend extends those claims whose turn it is, each three times a lease, and
// returns how many.
func extend(b *testing.B, d driver.Driver, tokens []driver.Claimed, lease time.Duration, begun time.Time, done int) int {
	b.Helper()
	due := int(time.Since(begun).Seconds() / lease.Seconds() * 3 * float64(len(tokens)))
	var ops []driver.Op
	for n := done; n < due && len(ops) < 128; n++ {
		op := byToken(driver.Extend, tokens[n%len(tokens)], job.Extended)
		op.Lease, op.Request = lease, random16()
		ops = append(ops, op)
	}
	for _, r := range d.Apply(b.Context(), "b", ops) {
		if r.Kind != job.NoKind {
			b.Fatalf("an extension: %v (%s)", r.Kind, r.Message)
		}
	}
	return len(ops)
}
