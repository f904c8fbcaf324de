package interop_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// heard waits for a change of a job which says that its lease lasts for at least and at
// most so long.
func (b *both) heard(what string, changes <-chan driver.Change, id job.ID, event job.EventType, least, most time.Duration) driver.Change {
	b.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case c := <-changes:
			h := (*driver.Holder)(nil)
			if c.Record != nil {
				h = c.Record.Holder
			}
			if c.Job == id && c.Event == event && h != nil && (h.NoExpiry && most == 0 || !h.NoExpiry && h.Remaining > least && h.Remaining <= most) {
				return c
			}
		case <-deadline:
			b.Fatalf("%s: watchers are not told; the job is read as %+v", what, b.read(id).Holder)
		}
	}
}

// TestExtensionsAreSeen: TaskFlow moves the end of its own leases and of ours, and watchers
// are told, whether Redis names the keys or the driver searches, and on a board that is
// only observed.
func TestExtensionsAreSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ notices, many, observe bool }{
		"with notifications":               {notices: true},
		"by searching the keys":            {},
		"by searching the jobs":            {many: true},
		"observed":                         {observe: true},
		"observed with notifications":      {observe: true, notices: true},
		"with notifications among strange": {notices: true, many: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := share(t, c.notices)
			if c.many { // so many keys that it is less to go through the jobs
				for range 50 {
					b.server.Command("SET", "stranger:"+job.ID(random()).String(), "1")
				}
			}
			changes := b.follow(c.observe)
			for _, ours := range []bool{false, true} {
				var id job.ID
				var token job.Token
				if ours {
					id = b.post("ours", nil)
					token = b.claim(id, "w", 10*time.Minute)
				} else {
					id = b.pythonID(b.python.Post("theirs", nil))
					b.ok(b.python.Claim(id.String(), "conductor", 600))
				}
				extend := func(seconds float64) {
					b.ok(b.python.On("extend", testserver.Args{"uuid": id.String(), "expiry": seconds}, nil))
				}
				if c.observe || !ours {
					b.heard("it is claimed", changes, id, job.ForeignChange, 0, 10*time.Minute)
				}
				extend(7200)
				got := b.heard("two hours", changes, id, job.Extended, time.Hour, 2*time.Hour)
				if ours && got.Record.Holder.Token != token {
					t.Errorf("our claim has the token %v now, want %v", got.Record.Holder.Token, token)
				}
				extend(1800)
				b.heard("half an hour", changes, id, job.ForeignChange, 0, 30*time.Minute)
				if ours {
					b.done(driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: token})
				}
			}
		})
	}
}

// follow watches the board, or observes it with a driver of its own.
func (b *both) follow(observe bool) <-chan driver.Change {
	b.Helper()
	if !observe {
		return b.watch()
	}
	settings, err := json.Marshal(map[string]string{"address": b.server.Addr})
	if err != nil {
		b.Fatal(err)
	}
	d, err := store.Open(b.Context(), driver.Config{Settings: settings})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	if _, err := d.OpenBoard(b.Context(), driver.BoardSpec{Name: "b", Observe: true, Settings: []byte(`{"namespace":"` + namespace + `"}`), Window: time.Hour}); err != nil {
		b.Fatal(err)
	}
	other := *b
	other.d = d
	return other.watch()
}

// TestOctaviaExtends has conductors do as Octavia's do: one extends its claim whenever the
// flow comes on, and a thread extends all that are half over. A server lists the jobs with
// the ends that their leases have now, and tells of each extension.
func TestOctaviaExtends(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{Config: []string{"notify-keyspace-events Kg$x"}})
	p := serve(t, server)
	f := testserver.StartTaskFlow(t)
	octavia := f.Connect("octavia", conf(server), 60)
	posted := octavia.Post("by the listener", testserver.Args{"book": true, "seconds": 600})
	f.Go("conductor", testserver.Args{"board": "octavia", "name": "listening", "extend": 7200})
	p.lastsFor(posted.UUID, time.Hour)

	short := testserver.StartTaskFlow(t)
	amphora := short.Connect("amphora", conf(server), 4)
	kept := amphora.Post("by the thread", nil)
	if err := amphora.Claim(kept.UUID, "thread", 4); err != nil {
		t.Fatal(err)
	}
	short.Go("keep_alive", testserver.Args{"board": "amphora", "conf": conf(server), "names": []string{"thread"}, "expiry": 4, "every": 0.2})
	first := p.leaseEnd(kept.UUID)
	testserver.Eventually(t, "the list has later ends of the lease, beyond the first", func() bool {
		return p.leaseEnd(kept.UUID).After(first.Add(4 * time.Second))
	})
}

// leaseEnd returns when the lease of a job ends by the server's list.
func (p *program) leaseEnd(uuid string) time.Time {
	p.t.Helper()
	out, err := p.command("job", "list", "-o", "json").Output()
	if err != nil {
		p.t.Fatal(err)
	}
	var list struct {
		Jobs []struct {
			UUID           string
			LeaseExpiresAt time.Time
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
	for _, j := range list.Jobs {
		if j.UUID == uuid {
			return j.LeaseExpiresAt
		}
	}
	return time.Time{}
}

// lastsFor waits until the server lists a job with a lease that lasts at least so long.
func (p *program) lastsFor(uuid string, least time.Duration) {
	p.t.Helper()
	begun := time.Now()
	testserver.Eventually(p.t, "the list has the extended lease", func() bool { return p.leaseEnd(uuid).After(begun.Add(least)) })
}
