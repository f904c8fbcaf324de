package interop_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/plugins/redis/store"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var failoverSpec = driver.BoardSpec{Name: "b", Settings: []byte(`{"namespace":"` + namespace + `"}`), Window: time.Hour}

// behindSentinels opens a board whose master Sentinels choose.
func behindSentinels(t *testing.T) (*both, *testserver.Sentinels, driver.BoardStatus) {
	t.Helper()
	sentinels := testserver.StartSentinels(t, testserver.RedisOptions{}, "")
	settings, err := json.Marshal(map[string]any{"sentinels": sentinels.Addrs, "master_name": sentinels.Name})
	if err != nil {
		t.Fatal(err)
	}
	b := &both{T: t, server: sentinels.Master()}
	if b.d, err = store.Open(t.Context(), driver.Config{Settings: settings}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.d.Close() })
	status, err := b.d.OpenBoard(t.Context(), failoverSpec)
	if err != nil {
		t.Fatal(err)
	}
	return b, sentinels, status
}

// reopen opens the board again as soon as there is a master.
func (b *both) reopen() driver.BoardStatus {
	b.Helper()
	var status driver.BoardStatus
	testserver.Eventually(b, "the board can be opened again", func() bool {
		var err error
		status, err = b.d.OpenBoard(b.Context(), failoverSpec)
		return err == nil
	})
	return status
}

// TestFailoverThatForgets: a replica that lacks what was acknowledged becomes the
// master. The loss is reported, and every token from before is void.
func TestFailoverThatForgets(t *testing.T) {
	t.Parallel()
	b, sentinels, before := behindSentinels(t)
	id := b.post("replicated", nil)
	token := b.claim(id, "us", 10*time.Minute)
	for _, server := range sentinels.Servers {
		testserver.Eventually(t, "every server has the claim", func() bool { return server.Command("EXISTS", namespace+":"+id.String()+".owned") == ":1" })
	}
	// The replicas lose the master and cannot come back to it; who is connected stays.
	b.server.Command("CONFIG", "SET", "requirepass", "changed")
	for _, replica := range sentinels.Servers {
		if replica != b.server {
			replica.Command("CLIENT", "KILL", "TYPE", "master")
		}
	}
	lost := b.post("acknowledged and lost", nil)
	b.want(job.NoKind, "extend", b.extend(id, token, 10*time.Minute))
	b.server.Kill()

	after := b.reopen()
	if after.Loss == "" || after.Generation <= before.Generation {
		t.Errorf("after the failover: generation %d, loss %q; before it: generation %d", after.Generation, after.Loss, before.Generation)
	}
	if rec := b.read(lost); rec.State != job.Unknown {
		t.Errorf("the test lost nothing: %v", rec.State)
	}
	b.want(job.LeaseLost, "the token from before", b.extend(id, token, time.Minute))
	again := b.claim(id, "us", time.Minute)
	if again.Generation <= token.Generation {
		t.Errorf("the new token's generation is %d, the old one's %d", again.Generation, token.Generation)
	}
	b.want(job.NoKind, "the new token", driver.Op{Kind: driver.Remove, Job: id, Precondition: driver.HeldByToken, Token: again})
}

// TestFailoverUnderLoad kills the master while jobs are posted and consumed:
// either everything that was acknowledged is there afterwards, or the board says
// that something was lost.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	b, _, before := behindSentinels(t)
	load, stop := context.WithCancel(t.Context())
	acknowledged := make(chan job.ID, 1<<20)
	var posters sync.WaitGroup
	for range 4 {
		posters.Go(func() {
			for load.Err() == nil {
				p := &driver.Posting{ID: random(), Name: "n", Digest: random()}
				r := b.d.Apply(t.Context(), "b", []driver.Op{{Kind: driver.Post, Request: random(), Posting: p}})[0]
				if r.Kind == job.NoKind {
					acknowledged <- p.ID
				}
			}
		})
	}
	testserver.Eventually(t, "some jobs are posted", func() bool { return len(acknowledged) > 500 })
	b.server.Kill()
	after := b.reopen()
	stop()
	posters.Wait()
	close(acknowledged)
	missing, n := 0, 0
	for id := range acknowledged {
		n++
		if b.read(id).State != job.Unclaimed {
			missing++
		}
	}
	t.Logf("of %d acknowledged posts %d are missing; loss: %q", n, missing, after.Loss)
	if missing > 0 && (after.Loss == "" || after.Generation <= before.Generation) {
		t.Errorf("%d of %d acknowledged posts are missing, and nothing is said of it", missing, n)
	}
	if after.Loss != "" && !strings.Contains(after.Loss, " ") {
		t.Errorf("the loss is reported as %q", after.Loss)
	}
}
