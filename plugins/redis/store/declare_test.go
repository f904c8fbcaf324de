package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/drivertest"
	"github.com/boardd/boardd/sdk/job"
)

func openDeclaring(t drivertest.T, address string) driver.Driver {
	settings, err := json.Marshal(map[string]any{"address": address, "declare_keys": true})
	if err != nil {
		t.Fatalf("%v", err)
	}
	d, err := store.Open(t.Context(), driver.Config{Settings: settings})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	return d
}

// TestDeclareKeys looks with MONITOR whether a script touches keys that it was
// not told.
func TestDeclareKeys(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	d := openDeclaring(t, server.Addr)
	t.Cleanup(func() { _ = d.Close() })
	b := &bench{T: t, d: d, board: "b", spec: driver.BoardSpec{Name: "b", MaxFinals: 1}}
	b.reopen()
	shown := monitor(t, server)
	lifeOfJobs(b)
	v, p := b.watch(), newPython(t, server, "b")
	theirs := p.post("python's")
	p.claim(theirs, "py", 0)
	b.eventually("the search finds what another program did", func() bool { _, owner := v.state(theirs); return owner == "py" })
	if counts, err := d.Count(t.Context(), "b"); err != nil || counts.Ended != 2 {
		t.Errorf("%+v (%v)", counts, err)
	}
	if keys := server.Command("KEYS", "b:boardd:attached.*"); strings.Count(keys, "attached.") != 4 {
		t.Errorf("what is attached: %s; want that of the four jobs that are left", keys)
	}
	declared, seen := map[string]bool{}, 0
	for _, c := range shown() {
		switch {
		case c.name == "evalsha" || c.name == "eval":
			declared = map[string]bool{}
			for _, w := range c.words[2:] { // the keys, and harmless arguments besides
				declared[w] = true
			}
		case c.script:
			for _, w := range c.words {
				if strings.HasPrefix(w, "b:") && !declared[w] && c.name != "publish" {
					t.Errorf("a script touched %s, which it was not told: %s", w, c.text)
				}
				seen++
			}
		}
	}
	if seen < 100 {
		t.Errorf("MONITOR showed %d words of scripts", seen)
	}
}

// lifeOfJobs has jobs go through everything that they can.
func lifeOfJobs(b *bench) {
	b.Helper()
	attach := func(id job.ID) {
		b.must(driver.Op{Kind: driver.Update, Job: id, Attach: []driver.Attachment{{Name: "a", Data: []byte("x")}}, Hold: &driver.Hold{}})
	}
	for _, kind := range []driver.OpKind{driver.Extend, driver.Update, driver.Release, driver.Trash, driver.Remove} {
		id := b.post("job")
		attach(id)
		limited := driver.Candidate{Job: id, Nonce: [16]byte{1}, Limits: []driver.Limit{{Key: "l", Max: 100}}}
		r := b.must(driver.Op{Kind: driver.Claim, Claim: &driver.ClaimSpec{
			Owner: "w", Lease: time.Hour, Count: 1, Parts: driver.Attached, Candidates: []driver.Candidate{{Job: job.ID{9}, Nonce: [16]byte{2}}, limited},
		}})
		if len(r.Claims) != 1 {
			b.Fatalf("not claimed: %+v", r.Skipped)
		}
		end := tokenOp(kind, r.Claims[0])
		if kind == driver.Remove {
			end.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("d"), KeepAttached: true}
		}
		b.must(end)
	}
	// The final record is pushed out by the next one, which names another job.
	pushed := b.claim(b.post("pushes a final record out"), "w")
	end := tokenOp(driver.Remove, pushed)
	end.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: []byte("d")}
	b.must(end)
	// An answer is asked for again by who does not know any more what it was about.
	spec := &driver.ClaimSpec{
		Owner: "w", Lease: time.Hour, Count: 1, Remember: true, Parts: driver.Attached,
		Candidates: []driver.Candidate{{Job: b.post("claimed once"), Nonce: [16]byte{3}}},
	}
	b.must(driver.Op{Kind: driver.Claim, Claim: spec, Request: [16]byte{4}})
	spec.Candidates = nil
	if again := b.must(driver.Op{Kind: driver.Claim, Claim: spec, Request: [16]byte{4}}); len(again.Claims) != 1 {
		b.Errorf("asked again: %+v", again)
	}
}

func TestConformanceDeclaring(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	drivertest.Run(t, drivertest.Harness{
		Open: func(t drivertest.T) driver.Driver { return openDeclaring(t, server.Addr) },
		Only: []string{"post", "claim", "retry", "remove", "trash", "random", "limits", "race"},
	})
}
