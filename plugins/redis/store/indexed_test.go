package store_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestMaxIndexed posts until a board has as many jobs as it may index, by the usual way and by
// the general one. An ended job makes room for another one, a repetition is answered as before,
// and a job may take the place of another one.
func TestMaxIndexed(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, func(s *driver.BoardSpec) { s.Settings = []byte(`{"max_indexed":3}`) })
	posting := func() driver.Op {
		p := &driver.Posting{Name: "j", Digest: [16]byte{1}}
		_, _ = rand.Read(p.ID[:]) // never fails
		return driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Request: p.ID, Event: job.Posted}
	}
	var last driver.Op
	for range 3 {
		last = posting()
		b.must(last)
	}
	refused := func(what string, op driver.Op) {
		t.Helper()
		r := b.do(op)
		if r.Kind != job.QuotaExceeded || !strings.Contains(r.Message, "has 3 open jobs") || !strings.Contains(r.Message, "max_indexed") {
			t.Errorf("%s: %v %q, want QUOTA_EXCEEDED and why", what, r.Kind, r.Message)
		}
	}
	refused("one more", posting())
	keyed := posting()
	keyed.Keys = []driver.Key{{Name: "k", Open: true}}
	refused("one more with a key", keyed)
	if r := b.do(last); r.Kind != job.NoKind || !r.Repeated {
		t.Errorf("a repeated post: %v %s", r.Kind, r.Message)
	}
	b.must(tokenOp(driver.Remove, b.claim(last.Job, "w")))
	b.must(posting())
	refused("one more again", posting())
}
