package examples

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

const (
	jobs  = 200
	kills = 4
	token = "a-secret-of-more-than-sixteen-bytes"
)

// serve serves a board from a driver and works it off while the driver's process
// is killed again and again, and in the end the server's.
func serve(t *testing.T, boardd, pluginDir, name string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boardd.hcl")
	err := os.WriteFile(file, []byte(fmt.Sprintf(`
plugin_dir = %q
catalog {
  backend = "mine" # or the embedded store keeps it, and has a process of its own
}
backend "mine" {
  driver = %q
}
tenant "acme" {
  token "all" {
    roles  = ["poster", "worker", "tenant-admin"]
    secret = %q
  }
}
board "jobs" {
  tenant  = "acme"
  backend = "mine"
  lease   = "10m"
}
`, pluginDir, name, token)), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	server := testserver.Start(t, boardd, "", "--config", file)
	c, err := client.New(client.Config{Addr: server.Addr, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	b := &worked{T: t, Board: c.Board("jobs"), server: server, killed: map[int]bool{}, consumed: map[string]string{}, trashed: map[string]bool{}}
	b.oneByOne(t.Context())
	b.all(t.Context())
	b.done(t.Context())

	driver := b.driver()
	server.Kill()
	b.eventually("the driver ends with its server", func() bool { return syscall.Kill(driver, 0) != nil })
	server.Restart()
	b.done(t.Context())
}

// worked is a board that is worked off.
type worked struct {
	*testing.T
	*client.Board
	server *testserver.Server
	killed map[int]bool // the driver's processes

	mu       sync.Mutex
	consumed map[string]string // by uuid, the token that consumed it
	trashed  map[string]bool   // by uuid, once
}

// driver returns the process of the driver under test.
func (b *worked) driver() int {
	b.Helper()
	var pid int
	b.eventually("the driver runs", func() bool {
		pids := b.server.Drivers()
		if len(pids) != 1 || b.killed[pids[0]] {
			return false
		}
		pid = pids[0]
		return true
	})
	return pid
}

func (b *worked) eventually(what string, done func() bool) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(deadline) {
			b.Fatalf("in vain for half a minute: %s\n%s", what, b.server.Log())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// retry repeats what may be repeated while a driver is away.
// done lists the errors by which a repetition says that an earlier try has done it.
func (b *worked) retry(what string, do func() error, done ...job.Kind) bool {
	b.Helper()
	for tries, deadline := 0, time.Now().Add(time.Minute); ; tries++ {
		err := do()
		if tries > 0 && slices.Contains(done, job.KindOf(err)) {
			return true
		}
		switch job.KindOf(err) {
		case job.NoKind:
			return true
		case job.Unavailable, job.OutcomeUnknown, job.Interrupted:
			if time.Now().Before(deadline) {
				time.Sleep(20 * time.Millisecond)
				continue
			}
		default:
		}
		b.Errorf("%s: %v", what, err)
		return false
	}
}

// oneByOne takes one job through its life and watches.
func (b *worked) oneByOne(ctx context.Context) {
	b.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	start, err := b.Events(ctx, "", 1, 0)
	if err != nil {
		b.Fatal(err)
	}
	step := func(what string, err error) {
		b.Helper()
		if err != nil {
			b.Fatalf("%s: %v", what, err)
		}
	}
	posted, err := b.Post(ctx, &client.NewJob{Name: "single", Details: []byte(`{"n":1}`)})
	step("post", err)
	uuid := posted[0].GetUuid()
	first, err := b.Claim(ctx, client.ClaimOptions{Owner: "w"})
	step("claim", err)
	if len(first) != 1 || first[0].GetUuid() != uuid || string(first[0].GetJob().GetDetails()) != `{"n":1}` {
		b.Fatalf("claimed %v, want the one job that was posted", first)
	}
	_, err = b.Extend(ctx, time.Minute, first...)
	step("extend", err)
	step("trash", b.Trash(ctx, "to see", first...))
	step("restore", b.Restore(ctx, uuid))
	if err := b.Consume(ctx, first...); !errors.Is(err, job.LeaseLost) {
		b.Errorf("consume with the token of an ended claim: %v, want LEASE_LOST", err)
	}
	second, err := b.Claim(ctx, client.ClaimOptions{Owner: "w", UUIDs: []string{uuid}})
	step("claim by uuid", err)
	step("consume", b.Consume(ctx, second...))
	step("consume again", b.Consume(ctx, second...))
	b.consumed[uuid] = second[0].GetToken()

	want := []boarddv1.EventType_Enum{
		boarddv1.EventType_POSTED, boarddv1.EventType_CLAIMED, boarddv1.EventType_EXTENDED, boarddv1.EventType_TRASHED,
		boarddv1.EventType_RESTORED, boarddv1.EventType_CLAIMED, boarddv1.EventType_CONSUMED,
	}
	var got []boarddv1.EventType_Enum
	for event, err := range b.Watch(ctx, start.Cursor) {
		step("watch", err)
		if got = append(got, event.GetType()); len(got) == len(want) {
			break
		}
	}
	if !slices.Equal(got, want) {
		b.Errorf("watched %v, want %v", got, want)
	}
}

// all posts many jobs and has them consumed, while the driver is killed.
func (b *worked) all(ctx context.Context) {
	b.Helper()
	const atOnce = 20
	var group sync.WaitGroup
	group.Go(func() {
		for n := range jobs / atOnce {
			batch := make([]*client.NewJob, atOnce)
			for i := range batch {
				batch[i] = &client.NewJob{Name: "job", Uuid: client.NewUUID(), Details: fmt.Appendf(nil, `{"n":%d}`, n*atOnce+i)}
			}
			b.retry("post", func() error { _, err := b.Post(ctx, batch...); return err })
		}
	})
	for n := range 3 {
		group.Go(func() {
			for b.count() <= jobs && !b.Failed() {
				b.work(ctx, fmt.Sprintf("worker %d", n))
			}
		})
	}
	for n := range kills {
		b.eventually("the jobs are worked off", func() bool { return b.count() > n*jobs/(kills+1) || b.Failed() })
		driver := b.driver()
		if err := syscall.Kill(driver, syscall.SIGKILL); err != nil {
			b.Errorf("kill %d: %v", n, err)
		}
		b.killed[driver] = true
	}
	group.Wait()
}

func (b *worked) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.consumed)
}

// work claims a few jobs, and ends each.
func (b *worked) work(ctx context.Context, owner string) {
	var claims []*client.Claim
	request := client.NewUUID()
	b.retry("claim", func() error {
		var err error
		claims, err = b.Claim(ctx, client.ClaimOptions{Owner: owner, Max: 5, Wait: 100 * time.Millisecond, RequestID: request})
		return err
	})
	for _, c := range claims {
		if !b.retry("extend", func() error { _, err := b.Extend(ctx, 10*time.Minute, c); return err }) {
			return
		}
		if b.firstOfTen(c) {
			b.retry("trash", func() error { return b.Trash(ctx, "to see", c) })
			b.retry("restore", func() error { return b.Restore(ctx, c.GetUuid()) }, job.AlreadyExists, job.NotFound) // another one may have consumed it by now
			continue
		}
		if b.retry("consume", func() error { return b.Consume(ctx, c) }) {
			b.mu.Lock()
			if before, twice := b.consumed[c.GetUuid()]; twice {
				b.Errorf("job %s was consumed with the tokens %s and %s", c.GetUuid(), before, c.GetToken())
			}
			b.consumed[c.GetUuid()] = c.GetToken()
			b.mu.Unlock()
		}
	}
}

// firstOfTen picks one claim in ten, and no job twice.
func (b *worked) firstOfTen(c *client.Claim) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trashed[c.GetUuid()] || c.GetJob().GetSequence()%10 != 0 {
		return false
	}
	b.trashed[c.GetUuid()] = true
	return true
}

// done checks that every job that was posted is consumed, and nothing else is
// there.
func (b *worked) done(ctx context.Context) {
	b.Helper()
	if len(b.consumed) != jobs+1 {
		b.Fatalf("%d jobs were consumed, want %d\n%s", len(b.consumed), jobs+1, b.server.Log())
	}
	var found []*client.Job
	b.retry("get", func() error {
		var err error
		found, err = b.Get(ctx, client.GetOptions{}, slices.Collect(maps.Keys(b.consumed))...)
		return err
	})
	for _, j := range found {
		if j.GetOutcome() != boarddv1.Outcome_CONSUMED {
			b.Errorf("job %s is %v with outcome %v, want it consumed", j.GetUuid(), j.GetState(), j.GetOutcome())
		}
	}
	var counts *client.Counts
	b.retry("count", func() error { var err error; counts, err = b.Count(ctx); return err })
	if counts.GetReady() != 0 || counts.GetDelayed() != 0 || counts.GetClaimed() != 0 || counts.GetTrashed() != 0 || counts.GetComplete() != jobs+1 {
		b.Errorf("the board counts %v, want %d complete and nothing else", counts, jobs+1)
	}
}
