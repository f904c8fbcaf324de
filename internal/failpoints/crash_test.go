package failpoints_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/failpoints"
	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/sleep"
)

// TestCrashEverywhere has each point end its process once, in the middle of a life with
// posts, claims, endings, logs, boards and tokens: those of a store on it, and the server's own
// on the embedded one, and on Redis or ZooKeeper. What was acknowledged has to be there
// afterwards, nothing is handed out twice, and the server serves.
//
// BOARDD_TEST_SEED draws at which of the first times a point ends its process, and an odd one has
// Redis and ZooKeeper change places.
func TestCrashEverywhere(t *testing.T) {
	t.Parallel()
	program := programs(t)
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		crash(t, program, "embedded", func(*testing.T, int) string { return "" })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		crash(t, program, "redis", func(t *testing.T, _ int) string {
			return fmt.Sprintf("address = %q", testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true}).Addr)
		})
	})
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
		crash(t, program, "zookeeper", func(_ *testing.T, part int) string {
			return fmt.Sprintf("servers = [%q], root = \"/part-%d\"", z.Servers()[0], part)
		})
	})
}

// TestEachCallTwice makes every call of a life once more after it has succeeded: what a
// life takes for a repetition is what the server answers to one. Crashes lose the answers
// to few of them.
func TestEachCallTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, programs(t), t.TempDir(), "embedded", "")
	w.keep()
	l := w.newLife(t.Context(), 8, newLedger())
	l.twice = true
	l.lead()
	l.decide()
	l.verify("after a life in which each call was made twice")
	w.stop()
}

// parts is how many servers share the points of a store: they mostly wait.
const parts = 2

// crash shares the points of a store among servers, each with a store as setting says.
func crash(t *testing.T, program, driver string, setting func(t *testing.T, part int) string) {
	t.Helper()
	points := pointsOf(t, driver, false)
	for part := range parts {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			t.Parallel()
			var mine []string
			for i, point := range points {
				if i%parts == part {
					mine = append(mine, point)
				}
			}
			crashAt(t, program, driver, setting(t, part), kills, mine)
		})
	}
}

// TestFailEverywhere has each point where an operation can fail do so once, and ends the
// server a moment later, as a disk does that is about to die.
func TestFailEverywhere(t *testing.T) {
	t.Parallel()
	w := programs(t)
	crashAt(t, w, "embedded", "", fails, pointsOf(t, "embedded", true))
}

// What happens at a point.
const (
	kills = "kill"
	fails = "error"
)

// pointsOf are those that a server on a store comes to, or only those that can fail.
func pointsOf(t *testing.T, driver string, onlyFailing bool) []string {
	t.Helper()
	all, err := failpoints.Find(testserver.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	turn := seed()
	for _, p := range all {
		first, _, _ := strings.Cut(p.Name, "/")
		switch {
		case onlyFailing && !p.Fails:
		case first == driver:
			names = append(names, p.Name)
		case first != "embedded" && first != "redis" && first != "zookeeper": // the server's
			if turn++; driver == "embedded" || (turn%2 == 0) == (driver == "redis") {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// seed is that of the run.
func seed() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("BOARDD_TEST_SEED"), 10, 64)
	return n
}

// crashed is what became of one world.
type crashed struct {
	*world

	ledger *ledger
	lives  int
	random *rand.Rand
	fresh  func() *world // another server, with a data folder of its own
	shared bool          // it has the same store
}

// crashAt goes through points with one server.
func crashAt(t *testing.T, program, driver, setting, action string, points []string) {
	t.Helper()
	folder := t.TempDir()
	fresh := func() *world { return newWorld(t, program, folder, driver, setting) }
	c := &crashed{world: fresh(), ledger: newLedger(), random: rand.New(rand.NewPCG(seed(), 0)), fresh: fresh, shared: driver != "embedded"} //nolint:gosec // drawn again by its seed
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	c.keep()
	for _, point := range points {
		begun := time.Now()
		stage := c.at(ctx, action, point)
		t.Logf("%s: %s, %v", point, stage, time.Since(begun).Round(time.Millisecond))
		if t.Failed() {
			t.Fatalf("so it is after the crash at %s", point)
		}
	}
	c.kill()
	c.keep()
	c.newLife(ctx, 0, c.ledger).verify("after kill -9")
	c.stop()
	c.newLife(ctx, 0, c.ledger).verifyFiles()
	t.Logf("%d lives, %d jobs, %d boards, %d tokens", c.lives, len(c.ledger.jobs), len(c.ledger.boards), len(c.ledger.tokens))
}

// at crashes at one point and checks what is left. It returns when that was.
func (c *crashed) at(ctx context.Context, action, point string) string {
	stages := []struct {
		name string
		do   func()
	}{
		{"in a life", func() { c.live(ctx, (*life).lead) }},
		{"in another life", func() { c.live(ctx, (*life).lead) }},
		{"at a restart", func() { c.stop(); c.keep(); c.ready() }},
		{"on a new server", func() { c.elsewhere(ctx) }},
		{"with a policy", func() { c.live(ctx, (*life).decide) }},
		{"in a life with large jobs", func() { c.live(ctx, (*life).bulk) }},
	}
	if action == fails {
		defer c.killAfter(ctx, point)()
	}
	c.arm(point, fmt.Sprintf("%s once hit=%d", action, 1+c.random.IntN(3)))
	for _, stage := range stages {
		stage.do()
		if c.fired(point) {
			c.live(ctx, func(*life) {})
			if c.restarts.Swap(0) == 0 { // a driver ended: the supervisor waits longer from time to time
				c.stop()
				c.keep()
			}
			return stage.name
		}
		c.arm(point, action+" once")
	}
	c.disarm(point)
	c.Errorf("nothing that was done comes to %s", point)
	return "never"
}

// killAfter ends the server at once when a point has fired, until the caller calls
// what it returns.
func (c *crashed) killAfter(ctx context.Context, point string) (leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		for !c.fired(point) {
			if sleep.For(ctx, 10*time.Millisecond) != nil { // nobody tells
				return
			}
		}
		_ = sleep.For(ctx, 300*time.Millisecond) // for a moment the server goes on with what failed
		_ = syscall.Kill(c.pid(), syscall.SIGKILL)
	})
	return func() { cancel(); done.Wait() }
}

// live leads a life and looks at what is left.
func (c *crashed) live(ctx context.Context, lead func(*life)) {
	c.lives++
	l := c.newLife(ctx, c.lives, c.ledger)
	lead(l)
	l.verify(fmt.Sprintf("after life %d", c.lives))
}

// elsewhere leads a life on a server with a new data folder, while the other one is
// stopped.
func (c *crashed) elsewhere(ctx context.Context) {
	c.stop()
	w := c.fresh()
	l := newLedger()
	w.keep()
	w.newLife(ctx, 1_000+c.lives, l).administer()
	w.newLife(ctx, 0, l).verifyCatalog("on a new server")
	w.stop()
	if c.shared {
		maps.Copy(c.ledger.boards, l.boards)
		maps.Copy(c.ledger.tokens, l.tokens)
	}
	c.keep()
}
