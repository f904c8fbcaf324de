package host_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// soon has boards rest that nobody calls for a moment.
const soon = 100 * time.Millisecond

// resting is a configuration whose boards soon rest.
func resting(drivers map[string]driver.Program, boards ...config.Board) host.Config {
	c := host.Config{Config: oneBackend("", boards...), Drivers: drivers}
	c.Config.RestAfter = soon
	return c
}

// workOn posts a job and ends it.
func workOn(ctx context.Context, t *testing.T, b *hostboard.Board) {
	t.Helper()
	if _, err := b.Post(ctx, []job.Posting{{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	claims, err := b.Claim(ctx, hostboard.ClaimRequest{Owner: "w"})
	if err != nil || len(claims.Claims) != 1 {
		t.Fatalf("claims %v, %v", claims, err)
	}
	errs, err := b.Consume(ctx, []hostboard.Ref{{ID: claims.Claims[0].ID, Token: b.FormatToken(claims.Claims[0].ID, claims.Claims[0].Token)}})
	if err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
}

// TestBoardsRest closes the boards on which nothing is to be done, and no others, and opens
// them for whoever calls.
func TestBoardsRest(t *testing.T) {
	t.Parallel()
	h, s := open(t, resting(oneStore(t, false), board("idle", "store"), board("waits", "store")))
	ctx := within(t)
	if err := use(ctx, s, "waits"); err != nil {
		t.Fatal(err)
	}
	b := ready(t, s, "idle")
	if h.OpenBoards() != 2 {
		t.Errorf("%d boards are open, want 2", h.OpenBoards())
	}
	workOn(ctx, t, b)
	for range 3 {
		eventually(t, "the idle board is closed", func() bool { return h.OpenBoards() == 1 })
		for _, served := range s.Boards() {
			if rests := served.Rests != nil; rests != (served.Config.Name == "idle") || !served.Status.Ready {
				t.Errorf("%s: rests %v, %+v", served.Config.Name, rests, served.Status)
			}
		}
		for _, g := range h.Gauges(ctx, 10) {
			if !g.Ready || g.Counts == nil || g.Board == "idle" && g.Counts.Complete == 0 {
				t.Errorf("metrics: %+v", g)
			}
		}
		workOn(ctx, t, ready(t, s, "idle"))
	}
}

// TestBoardsRestOverRestarts starts a host again whose boards rest. One that was open when
// its host died is opened, though nobody calls.
func TestBoardsRestOverRestarts(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	c := resting(drivers, board("idle", "store"), board("waits", "store"))
	first, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := login(t.Context(), first, secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := use(within(t), s, "waits"); err != nil {
		t.Fatal(err)
	}
	ready(t, s, "idle")
	d, err := drivers["memory"].Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the store says that the idle board rests", func() bool {
		_, err := d.Documents().Get(t.Context(), driver.Space{Name: "rest"}, "default/idle")
		return err == nil
	})
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, s := open(t, c)
	if err := second.Started(within(t)); err != nil {
		t.Errorf("the server is not ready: %v", err)
	}
	if n := second.OpenBoards(); n != 1 {
		t.Errorf("%d boards are open, want the one with a job", n)
	}
	workOn(within(t), t, ready(t, s, "idle"))
}

// TestRestEndsWithASchedule: a tick is posted at its time on a board that rests.
func TestRestEndsWithASchedule(t *testing.T) {
	t.Parallel()
	h, s := open(t, resting(oneStore(t, false), board("idle", "store")))
	_, err := ready(t, s, "idle").PutSchedule(within(t), hostboard.Schedule{Name: "often", Every: 2 * time.Second, Job: job.Posting{Name: "tick"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the board is closed", func() bool { return h.OpenBoards() == 0 })
	eventually(t, "the job of a tick is there", func() bool {
		g := h.Gauges(within(t), 1)
		return h.OpenBoards() == 1 && g[0].Counts != nil && g[0].Counts.Ready == 1
	})
}

// TestRestOfTwoHosts: a board that one host opens is opened on the other one, too, so that
// it is looked after whichever of them dies.
func TestRestOfTwoHosts(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	first, s := open(t, resting(drivers, board("idle", "store")))
	second, _ := open(t, resting(drivers, board("idle", "store")))
	ready(t, s, "idle")
	for range 3 {
		eventually(t, "the board is closed on both", func() bool { return first.OpenBoards()+second.OpenBoards() == 0 })
		if err := use(within(t), s, "idle"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the board is open on both", func() bool { return first.OpenBoards() == 1 && second.OpenBoards() == 1 })
		b := ready(t, s, "idle")
		claims, err := b.Claim(within(t), hostboard.ClaimRequest{Owner: "w"})
		if err != nil || len(claims.Claims) != 1 {
			t.Fatalf("claims %v, %v", claims, err)
		}
		if _, err := b.Consume(within(t), []hostboard.Ref{{ID: claims.Claims[0].ID, Token: b.FormatToken(claims.Claims[0].ID, claims.Claims[0].Token)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCostOfRest measures what boards take that are open, and that rest.
// BOARDD_TEST_BOARDS=10000 has as many.
func TestCostOfRest(t *testing.T) {
	count := 200
	if text := os.Getenv("BOARDD_TEST_BOARDS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	boards := make([]config.Board, count)
	for i := range boards {
		boards[i] = board(fmt.Sprint("b", i), "store")
	}
	c := resting(oneStore(t, false), boards...)
	c.Config.RestAfter = -1
	empty := taken()
	h, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for h.OpenBoards() < count || h.Started(within(t)) != nil {
		time.Sleep(time.Millisecond) // nobody announces it
	}
	open := taken() - empty
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	c.Config.RestAfter = soon
	if h, err = host.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "all rest", func() bool { return h.OpenBoards() == 0 })
	rest := 0
	eventually(t, "those that were open have ended, and boards at rest take at most a third", func() bool {
		rest = taken() - empty
		return runtime.NumGoroutine() < 2*count && 3*rest <= open
	})
	t.Logf("%d boards: %d bytes each open, %d at rest", count, open/count, rest/count)
}

// taken is the memory that the program's heap and stacks take.
func taken() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc + m.StackInuse)
}
