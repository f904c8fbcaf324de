package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
)

func TestExamine(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{Config: []string{"maxmemory 100mb", "maxmemory-policy allkeys-lru"}})
	p := newPython(t, server, "octavia_jobboard")
	stuck, trashed, working := p.post("stuck"), p.post("trashed"), p.post("in work")
	p.claim(stuck, "py", 0)
	p.claim(working, "py", time.Hour)
	p.trash(trashed) // leaves last_modified behind
	gone := p.post("gone")
	p.consume(gone)
	p.ok(p.client.Set(t.Context(), p.key(gone, "owned"), "nobody", 0))
	b := newBench(t, server, func(s *driver.BoardSpec) { s.Observe = true })
	found := map[string]string{}
	for f, err := range b.d.(driver.Examiner).Examine(t.Context(), b.board) {
		if err != nil {
			t.Fatalf("Examine: %v", err)
		}
		if found[f.Code] != "" {
			t.Errorf("%s is found twice: %s and %s", f.Code, found[f.Code], f.Subject)
		}
		found[f.Code] = f.Subject
	}
	for code, subject := range map[string]string{
		"eviction": "allkeys-lru", "notifications-off": "notify-keyspace-events", "not-durable": "appendonly", "claim-without-expiry": stuck.String(),
		"leaked-key": trashed.String(), "owner-without-job": gone.String(),
	} {
		if got, ok := found[code]; !ok || !strings.Contains(got, subject) {
			t.Errorf("%s: found %q, want %q", code, got, subject)
		}
		delete(found, code)
	}
	if len(found) > 0 {
		t.Errorf("found besides: %v", found)
	}
}
