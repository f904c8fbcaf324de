package store_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var received = regexp.MustCompile(`zk_packets_received\s+(\d+)`)

// packets returns how many requests a server has had.
func packets(b testing.TB, z *testserver.ZooKeeperEnsemble) int {
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

// BenchmarkExtensions has one host extend claims all the time, three times a
// lease, and another one find out at the end of each lease, as a host does, that
// it may not end them. other-requests/s is what that costs the ensemble: all
// requests but the extensions.
func BenchmarkExtensions(b *testing.B) {
	for _, size := range []struct {
		claims int
		lease  time.Duration
	}{{1_000, 15 * time.Second}, {10_000, 30 * time.Second}} {
		b.Run(fmt.Sprintf("claims=%d/lease=%v", size.claims, size.lease), func(b *testing.B) { extensions(b, size.claims, size.lease) })
	}
}

func extensions(b *testing.B, claims int, lease time.Duration) {
	b.Helper()
	z := testserver.ZooKeeper(b, testserver.ZooKeeperOptions{Fast: true})
	first, second := openFor(b, z), openFor(b, z)
	spec := driver.BoardSpec{Name: "b", Settings: []byte(`{"path":"/taskflow/jobs"}`)}
	for _, d := range []driver.Driver{first, second} {
		if _, err := d.OpenBoard(b.Context(), spec); err != nil {
			b.Fatal(err)
		}
	}
	tokens := claimed(b, first, claims, time.Hour)
	for last, now := 0, packets(b, z); now-last > 50; { // until the other host has heard of all
		time.Sleep(time.Second)
		last, now = now, packets(b, z)
	}
	due := make([]time.Time, claims)
	turn := func(leases int) (extended int) {
		begun := time.Now()
		for end := begun.Add(time.Duration(leases) * lease); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			extended += extend(b, first, tokens, lease, begun, extended)
			lapse(b, second, tokens, due)
		}
		return extended
	}
	for i := range due {
		due[i] = time.Now().Add(lease/2 + time.Duration(i)*lease/time.Duration(2*claims))
	}
	turn(1) // the other host learns how long the leases are
	begun, before, extended := time.Now(), packets(b, z), 0
	for b.Loop() {
		extended += turn(2)
	}
	seconds := time.Since(begun).Seconds()
	b.ReportMetric(float64(packets(b, z)-before-extended)/seconds, "other-requests/s")
	b.ReportMetric(float64(extended)/seconds, "extensions/s")
	b.ReportMetric(0, "ns/op")
}

// claimed posts jobs and claims them.
func claimed(b *testing.B, d driver.Driver, n int, lease time.Duration) []driver.Claimed {
	b.Helper()
	tokens := make([]driver.Claimed, 0, n)
	for len(tokens) < n {
		posts, claims := make([]driver.Op, min(128, n-len(tokens))), []driver.Op(nil)
		for i := range posts {
			id := job.ID(random16())
			p := &driver.Posting{ID: id, Name: "x", Encoding: job.JSON, Details: []byte(`{}`), Digest: random16()}
			posts[i] = driver.Op{Kind: driver.Post, Job: id, Posting: p, Request: random16()}
			claims = append(claims, claimOp(id, "w", lease))
		}
		d.Apply(b.Context(), "b", posts)
		for _, r := range d.Apply(b.Context(), "b", claims) {
			if len(r.Claims) != 1 {
				b.Fatalf("a claim: %v (%s), %+v", r.Kind, r.Message, r.Skipped)
			}
			tokens = append(tokens, r.Claims[0])
		}
	}
	return tokens
}

// lapse tries to end each claim whose lease would be over.
func lapse(b *testing.B, d driver.Driver, tokens []driver.Claimed, due []time.Time) {
	b.Helper()
	var ops []driver.Op
	var at []int
	for i := range tokens {
		if now := time.Now(); now.After(due[i]) && len(ops) < 128 {
			ops = append(ops, driver.Op{Kind: driver.Release, Job: tokens[i].Job, Precondition: driver.Lapsed, Token: tokens[i].Token, Request: random16()})
			at = append(at, i)
		}
	}
	for i, r := range d.Apply(b.Context(), "b", ops) {
		if r.Kind != job.Precondition {
			b.Fatalf("a claim that is extended was ended: %v (%s)", r.Kind, r.Message)
		}
		due[at[i]] = time.Now().Add(r.Remaining)
	}
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
