package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// examine returns what is found of a board that is only observed, as "SEVERITY
// CODE SUBJECT".
func examine(t *testing.T, d driver.Driver, name string) []string {
	t.Helper()
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: name, Observe: true}); err != nil {
		t.Fatal(err)
	}
	var found []string
	for f, err := range d.(driver.Examiner).Examine(t.Context(), name) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Problem == "" {
			t.Errorf("%s says nothing", f.Code)
		}
		found = append(found, fmt.Sprintf("%v %s %s", f.Severity, f.Code, f.Subject))
	}
	return found
}

// TestExamine has everything that only this driver can see.
func TestExamine(t *testing.T) {
	t.Parallel()
	healthy := []string{"notify-keyspace-events Kg$x", "maxmemory-policy noeviction"}
	for name, test := range map[string]struct {
		config  []string
		prepare func(p *python)
		want    []string
	}{
		"healthy":             {config: healthy},
		"no notifications":    {want: []string{"note no-notifications notify-keyspace-events"}},
		"few notifications":   {config: []string{"notify-keyspace-events Kgx"}, want: []string{"note no-notifications notify-keyspace-events"}},
		"all notifications":   {config: []string{"notify-keyspace-events KA"}},
		"evicts, no limit":    {config: append(healthy[:1:1], "maxmemory-policy allkeys-lru"), want: []string{"note evicts-jobs maxmemory-policy allkeys-lru"}},
		"evicts":              {config: append(healthy[:1:1], "maxmemory-policy allkeys-lru", "maxmemory 100mb"), want: []string{"problem evicts-jobs maxmemory-policy allkeys-lru"}},
		"evicts what expires": {config: append(healthy[:1:1], "maxmemory-policy volatile-ttl", "maxmemory 100mb"), want: []string{"warning evicts-claims maxmemory-policy volatile-ttl"}},
		"orphans": {config: healthy, prepare: func(p *python) {
			ctx := p.t.Context()
			p.claim(p.post("stands"), "w", 0)
			const gone = "11111111-2222-3333-4444-555555555555"
			p.ok(p.client.Set(ctx, p.namespace+gone+".owned", "ghost", 0))
			p.ok(p.client.Set(ctx, p.namespace+gone+".last_modified", "x", 0))
			p.ok(p.client.HSet(ctx, p.namespace+"66666666-2222-3333-4444-555555555555.owned", "not", "ours"))
			p.ok(p.client.Set(ctx, "another:"+gone+".owned", "not ours", 0))
		}, want: []string{
			"warning owner-without-job b:11111111-2222-3333-4444-555555555555.owned",
			"warning owner-without-job b:66666666-2222-3333-4444-555555555555.owned",
			"note leaked-last-modified b:11111111-2222-3333-4444-555555555555.last_modified",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testserver.StartRedis(t, testserver.RedisOptions{Config: test.config})
			p := newPython(t, server, "b")
			if test.prepare != nil {
				test.prepare(p)
			}
			before := everything(t, p.client)
			d := openAt(t, server.Addr)
			defer func() { _ = d.Close() }()
			found := examine(t, d, "b")
			slices.Sort(found)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, found); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, everything(t, p.client)); diff != "" {
				t.Errorf("the examination changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestExamineClock has a board whose last change is in the future.
func TestExamineClock(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{Config: []string{"notify-keyspace-events KA"}})
	d := openAt(t, server.Addr)
	defer func() { _ = d.Close() }()
	if _, err := d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	posting := &driver.Posting{ID: job.ID{1}, Name: "x", Priority: job.Normal, Details: []byte("{}"), Digest: [16]byte{1}}
	posted := d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Post, Job: posting.ID, Posting: posting, Event: job.Posted}})
	if err := posted[0].Err(&driver.Op{}); err != nil {
		t.Fatal(err)
	}
	if found := examine(t, d, "b"); found != nil {
		t.Errorf("a sound board has %v", found)
	}
	p := newPython(t, server, "b")
	entries := p.client.XRange(t.Context(), "b:boardd:events", "-", "+").Val()
	if len(entries) != 1 {
		t.Fatalf("there are %d entries", len(entries))
	}
	raw := []byte(entries[0].Values["e"].(string))
	const at = 4 + 3 + 36 + 8 // of the change's time, see events.go
	ahead := time.Now().Add(time.Hour).UnixMicro()
	for i := range 8 {
		raw[at+i] = byte(ahead >> (56 - 8*i))
	}
	p.ok(p.client.Del(t.Context(), "b:boardd:events"))
	p.ok(p.client.XAdd(t.Context(), &redis.XAddArgs{Stream: "b:boardd:events", ID: entries[0].ID, Values: []any{"f", entries[0].Values["f"], "e", raw}}))
	if diff := cmp.Diff([]string{"warning clock-went-back TIME"}, examine(t, d, "b")); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// everything is every key with what it holds.
func everything(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range c.Keys(t.Context(), "*").Val() {
		all[key] = c.Dump(t.Context(), key).Val()
	}
	return all
}
