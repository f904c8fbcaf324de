package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// TestCutConnection cuts the connection again and again, so that answers are
// lost of changes that were made.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	p := testserver.NewProxy(t, z.Servers()[0])
	k := sit(t, openWith(t, settingsOf([]string{p.Addr()}, nil)), "/taskflow/jobs", nil)
	k.watch()
	k.through(func() {
		for range 10 {
			time.Sleep(300 * time.Millisecond)
			p.Sever(false)
		}
	})
	id := k.post("after", `{}`, nil)
	k.sees(id, job.Unclaimed, "a job was posted after all that")
}

// TestLostSession keeps the driver away until its session has expired.
func TestLostSession(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]map[string]any{
		"open to all": {},
		"for one user": { // who is to be known in the next session as well
			"auth": map[string]any{"credentials": "board:secret"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
			p := testserver.NewProxy(t, z.Servers()[0])
			settings := settingsOf([]string{p.Addr()}, more)
			settings["session_timeout"] = "1s"
			k := sit(t, openWith(t, settings), "/taskflow/jobs", nil)
			generation := k.status.Generation
			k.through(func() {
				p.Sever(true)
				time.Sleep(5 * time.Second) // ZooKeeper forgets a session two ticks after its timeout
				p.Sever(false)
				time.Sleep(time.Second)
			})
			k.open()
			if k.status.Loss != "" || k.status.Generation != generation {
				t.Errorf("only the session was lost, and the board says %q at generation %d", k.status.Loss, k.status.Generation)
			}
			k.watch()
			id := k.post("after", `{}`, nil)
			k.sees(id, job.Unclaimed, "a job was posted after all that")
		})
	}
}

// TestDeafServer has a connection through which nothing comes any more.
func TestDeafServer(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	p := testserver.NewProxy(t, z.Servers()[0])
	k := sit(t, openWith(t, settingsOf([]string{p.Addr()}, map[string]any{"session_timeout": "2s"})), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(300 * time.Millisecond)
		p.SetDeaf(true)
		time.Sleep(3 * time.Second)
		p.SetDeaf(false)
		p.Sever(false)
		time.Sleep(time.Second)
	})
}

// TestEnsemble kills the leader of three servers, and then another one, under
// load. Everything is written to the disk as in earnest.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	k.watch()
	k.through(func() {
		time.Sleep(time.Second)
		for range 2 {
			victim := max(z.Leader(), 0)
			z.Kill(victim)
			time.Sleep(2 * time.Second)
			z.Start(victim)
			time.Sleep(time.Second)
		}
	})
	id := k.post("after", `{}`, nil)
	k.sees(id, job.Unclaimed, "a job was posted after all that")
	if k.status.Durability != driver.Replicated {
		t.Errorf("three servers are %q", k.status.Durability)
	}
}

// TestServerRestart kills the only server under load: nothing that was
// acknowledged is lost.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(time.Second)
		z.Kill(0)
		time.Sleep(time.Second)
		z.Start(0)
		time.Sleep(time.Second)
	})
	k.open()
	if k.status.Loss != "" {
		t.Errorf("the server came back with everything, and the board says %q", k.status.Loss)
	}
}

// TestReadOnlyServer leaves one server of three, which then serves whoever only
// wants to read: boardd does not take it for the ensemble.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	minority(t, testserver.ZooKeeperOptions{Members: 3, Fast: true, Java: []string{"-Dreadonlymode.enabled=true"}}, "read-only")
}

// TestMinority leaves one server of three under load: it answers nobody.
func TestMinority(t *testing.T) {
	t.Parallel()
	minority(t, testserver.ZooKeeperOptions{Members: 3, Fast: true}, "not currently serving")
}

func minority(t *testing.T, o testserver.ZooKeeperOptions, says string) {
	t.Helper()
	z := testserver.ZooKeeper(t, o)
	k := sit(t, openWith(t, settingsOf(z.Servers(), map[string]any{"session_timeout": "2s"})), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(500 * time.Millisecond)
		z.Kill(0)
		z.Kill(1)
		k.until("the last server says "+says, func() bool { return strings.Contains(z.Says(2, "srvr"), says) })
		id := job.ID(random16())
		p := &driver.Posting{ID: id, Name: "never", Encoding: job.JSON, Details: []byte(`{}`)}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		op := driver.Op{Kind: driver.Post, Job: id, Posting: p, Request: random16()}
		if r := k.driver.Apply(ctx, k.name, []driver.Op{op})[0]; r.Kind == job.NoKind {
			t.Errorf("a minority has changed something: %+v", r)
		}
		z.Start(0)
		if r := k.persist(&op); r.Kind != job.NoKind {
			t.Errorf("with a majority: %v (%s)", r.Kind, r.Message)
		}
	})
}

// TestHungLeader stops the leader of three servers without a word, under load,
// and lets it go on when there is another one.
func TestHungLeader(t *testing.T) {
	t.Parallel()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Members: 3, Fast: true, Config: []string{"syncLimit=4"}})
	k := sit(t, openWith(t, settingsOf(z.Servers(), map[string]any{"session_timeout": "4s"})), "/taskflow/jobs", nil)
	k.through(func() {
		time.Sleep(500 * time.Millisecond)
		leader := z.Leader()
		if leader < 0 {
			t.Error("nobody leads")
			return
		}
		z.Pause(leader)
		time.Sleep(4 * time.Second)
		z.Resume(leader)
		time.Sleep(time.Second)
	})
}
