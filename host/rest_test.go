package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/boardd/boardd/host"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/host/webhook"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
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

// on calls a board, which does not rest before do has returned.
func on(t *testing.T, h *host.Host, name string, do func(ctx context.Context, b *hostboard.Board)) {
	t.Helper()
	s, err := login(t.Context(), h, secret)
	if err != nil {
		t.Fatal(err)
	}
	ctx, release := s.Begin(within(t))
	defer release()
	b, err := s.Board(ctx, name, "PostJobs")
	if err == nil {
		err = b.Ready(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	do(ctx, b)
}

// post posts a job on a board.
func post(t *testing.T, h *host.Host, name string, p job.Posting) (j *job.Job) {
	t.Helper()
	on(t, h, name, func(ctx context.Context, b *hostboard.Board) {
		results, err := b.Post(ctx, []job.Posting{p})
		if err == nil {
			err = results[0].Err
		}
		if err != nil {
			t.Fatal(err)
		}
		j = results[0].Job
	})
	return j
}

// workOn posts a job and ends it.
func workOn(t *testing.T, h *host.Host, name string) {
	t.Helper()
	on(t, h, name, func(ctx context.Context, b *hostboard.Board) { workThrough(ctx, t, b) })
}

func workThrough(ctx context.Context, t *testing.T, b *hostboard.Board) {
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

// claimedOn posts a job and claims it for a minute.
func claimedOn(t *testing.T, h *host.Host, name string) (claim hostboard.Ref) {
	t.Helper()
	on(t, h, name, func(ctx context.Context, b *hostboard.Board) {
		if _, err := b.Post(ctx, []job.Posting{{Name: "claimed"}}); err != nil {
			t.Fatal(err)
		}
		claims, err := b.Claim(ctx, hostboard.ClaimRequest{Owner: "w", Lease: time.Minute})
		if err != nil || len(claims.Claims) != 1 {
			t.Fatalf("claims %v, %v", claims, err)
		}
		c := &claims.Claims[0]
		claim = hostboard.Ref{ID: c.ID, Token: b.FormatToken(c.ID, c.Token)}
	})
	return claim
}

// TestBoardsRest closes the boards on which nothing is to be done, jobs that wait or not, and no
// others, and opens them for whoever calls. Meanwhile they are shown as they stand.
func TestBoardsRest(t *testing.T) {
	t.Parallel()
	h, s := open(t, resting(oneStore(t, false), board("idle", "store"), board("waits", "store"), board("held", "store")))
	ctx := within(t)
	posted := post(t, h, "waits", job.Posting{Name: "a"})
	since := posted.CreatedAt // it could be claimed
	post(t, h, "waits", job.Posting{Name: "b", NotBefore: time.Now().Add(time.Hour)})
	claimedOn(t, h, "held")
	workOn(t, h, "idle")
	for range 3 {
		eventually(t, "two boards are closed", func() bool { return h.OpenBoards() == 1 })
		for _, served := range s.Boards() {
			if rests := served.Rests != nil; rests != (served.Config.Name != "held") || !served.Status.Ready {
				t.Errorf("%s: rests %v, %+v", served.Config.Name, rests, served.Status)
			}
		}
		for _, g := range h.Gauges(ctx, 10) {
			switch c := g.Counts; {
			case !g.Ready || c == nil:
				t.Errorf("metrics: %+v", g)
			case g.Board == "idle" && c.Complete == 0, g.Board == "waits" && (c.Ready != 1 || c.Delayed != 1 || !c.OldestReadyAt.Equal(since)):
				t.Errorf("metrics of %s: %+v", g.Board, c)
			}
		}
		if h.OpenBoards() != 1 {
			t.Errorf("%d boards are open after they were looked at", h.OpenBoards())
		}
		workOn(t, h, "idle")
		on(t, h, "waits", func(ctx context.Context, b *hostboard.Board) {
			claims, err := b.Claim(ctx, hostboard.ClaimRequest{Owner: "w"})
			if err != nil || len(claims.Claims) != 1 || claims.Claims[0].ID != posted.ID {
				t.Fatalf("claims %v, %v", claims, err)
			}
			if _, err := b.Release(ctx, []job.ID{posted.ID}, "w", "again"); err != nil {
				t.Fatal(err)
			}
			results, err := b.Get(ctx, []job.ID{posted.ID}, hostboard.GetOptions{})
			if err != nil || results[0].Err != nil || !results[0].Job.ModifiedAt.After(since) {
				t.Fatalf("after it was given back: %+v, %v", results, err)
			}
			since = results[0].Job.ModifiedAt
		})
	}
}

// TestBoardsRestOverRestarts starts a host again whose boards rest, jobs and all. One that was
// open when its host died is opened, though nobody calls.
func TestBoardsRestOverRestarts(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	c := resting(drivers, board("idle", "store"), board("waits", "store"), board("held", "store"))
	first, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	post(t, first, "waits", job.Posting{Name: "a"})
	claimedOn(t, first, "held")
	eventually(t, "the store says that two boards rest", func() bool { return restsIn(t, drivers, "idle") && restsIn(t, drivers, "waits") })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, _ := open(t, c)
	if err := second.Started(within(t)); err != nil {
		t.Errorf("the server is not ready: %v", err)
	}
	if n := second.OpenBoards(); n != 1 {
		t.Errorf("%d boards are open, want the one with a claimed job", n)
	}
	for _, g := range second.Gauges(within(t), 10) {
		if g.Board == "waits" && (g.Counts == nil || g.Counts.Ready != 1 || g.Counts.OldestReadyAt.IsZero()) {
			t.Errorf("after the restart: %+v", g.Counts)
		}
	}
	workOn(t, second, "idle")
}

// restsIn reports whether a store says that a board rests.
func restsIn(t *testing.T, drivers map[string]driver.Program, name string) bool {
	t.Helper()
	_, err := restOf(t, drivers, name)
	return err == nil
}

// restOf reads when a board is opened that rests.
func restOf(t *testing.T, drivers map[string]driver.Program, name string) (due time.Time, err error) {
	t.Helper()
	d, err := drivers["memory"].Open(t.Context(), driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := d.Documents().Get(t.Context(), driver.Space{Name: "rest"}, "default/"+name)
	if err != nil {
		return due, err
	}
	var r struct{ Due time.Time }
	if err := json.Unmarshal(doc.Data, &r); err != nil {
		t.Fatal(err)
	}
	return r.Due, nil
}

// TestRestEndsWithADelayedJob opens a board when a job is due that waited for its time, though
// nobody calls, also on a host that was started since.
func TestRestEndsWithADelayedJob(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		drivers := oneStore(t, false)
		c := resting(drivers, board("idle", "store"))
		c.Logger = slog.New(slog.DiscardHandler)
		h, err := host.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(3 * time.Second)
		post(t, h, "idle", job.Posting{Name: "later", NotBefore: at})
		eventually(t, "the board is closed", func() bool { return h.OpenBoards() == 0 && restsIn(t, drivers, "idle") })
		if again {
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			h, _ = open(t, c)
		} else {
			t.Cleanup(func() { _ = h.Close() })
		}
		eventually(t, "the job is ready", func() bool {
			g := h.Gauges(within(t), 1)[0]
			return g.Counts != nil && g.Counts.Ready == 1 && g.Counts.Delayed == 0
		})
		if time.Now().Before(at) {
			t.Error("the job is ready before its time")
		}
	}
}

// TestRestCountsForLimits: what rests counts for the limits of its tenant, on a host that was
// started since as well.
func TestRestCountsForLimits(t *testing.T) {
	t.Parallel()
	c := resting(oneStore(t, false))
	c.Config = limited(config.Limits{OpenJobs: 2, DetailBytes: 100}, config.Limits{})
	c.Config.RestAfter, c.Logger = soon, slog.New(slog.DiscardHandler)
	h, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	post(t, h, "a", job.Posting{Name: "x", Details: []byte(`{"x":"1234567890"}`)})
	for again := range 2 {
		eventually(t, "both boards rest", func() bool { return h.OpenBoards() == 0 })
		if again == 1 {
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			h, _ = open(t, c)
			if err := h.Started(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		if use := h.Use(within(t), tenant.Default); use["open_jobs"] != 1 || use["detail_bytes"] == 0 {
			t.Errorf("used are %v", use)
		}
		on(t, h, "b", func(ctx context.Context, b *hostboard.Board) {
			results, err := b.Post(ctx, []job.Posting{{Name: "y"}, {Name: "z"}})
			if err != nil || results[0].Err != nil || job.KindOf(results[1].Err) != job.QuotaExceeded {
				t.Fatalf("two more jobs: %v, %v", results, err)
			}
			if _, err := b.Cancel(ctx, []job.ID{results[0].Job.ID}, true); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRestKeepsUniqueKeys: the window of a key goes on while its board rests, and ends there.
func TestRestKeepsUniqueKeys(t *testing.T) {
	t.Parallel()
	h, _ := open(t, resting(oneStore(t, false), board("idle", "store")))
	keyed := job.Posting{Name: "k", Unique: job.Unique{Key: "k", Window: 2 * time.Second, OnConflict: job.Reject}}
	began := time.Now()
	post(t, h, "idle", keyed)
	eventually(t, "the board rests", func() bool { return h.OpenBoards() == 0 })
	again := func() (err error) {
		on(t, h, "idle", func(ctx context.Context, b *hostboard.Board) {
			results, failed := b.Post(ctx, []job.Posting{keyed})
			if err = failed; err == nil {
				err = results[0].Err
			}
		})
		return err
	}
	if err := again(); err == nil && time.Since(began) < 2*time.Second {
		t.Error("within the window the key was taken again")
	}
	eventually(t, "the key is free again", func() bool { return again() == nil })
}

// TestCallsKeepBoardsOpen: a board does not rest while a call is under way.
func TestCallsKeepBoardsOpen(t *testing.T) {
	t.Parallel()
	h, s := open(t, resting(oneStore(t, false), board("idle", "store"), board("called", "store")))
	ctx, release := s.Begin(within(t))
	if _, err := s.Board(ctx, "called", "GetJobs"); err != nil {
		t.Fatal(err)
	}
	other, err := login(t.Context(), h, secret)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // so that all boards were looked at in between
		ready(t, other, "idle")
		eventually(t, "the other board rests", func() bool { return h.OpenBoards() == 1 })
	}
	if ctx.Err() != nil {
		t.Errorf("the call has ended: %v", context.Cause(ctx))
	}
	release()
	eventually(t, "both rest", func() bool { return h.OpenBoards() == 0 })
}

// TestPagesKeepBoardsOpen: a board does not rest while somebody has a page of it open, and that
// page is told when the board is taken away.
func TestPagesKeepBoardsOpen(t *testing.T) {
	t.Parallel()
	c := resting(oneStore(t, false), board("idle", "store"), board("shown", "store"))
	next := c.Config
	c.Load = func() (*config.Config, error) { c := next; return &c, nil }
	h, s := open(t, c)
	show := func() *host.Shown {
		t.Helper()
		shown, err := s.Show(within(t), "shown")
		if err != nil {
			t.Fatal(err)
		}
		return shown
	}
	first, second := show(), show()
	first.Release()
	for range 2 { // so that all boards were looked at in between
		ready(t, s, "idle")
		eventually(t, "the other board rests", func() bool { return h.OpenBoards() == 1 })
	}
	select {
	case <-second.Gone:
		t.Error("the board was taken away while a page showed it")
	default:
	}
	second.Release()
	eventually(t, "both rest", func() bool { return h.OpenBoards() == 0 })

	last := show()
	defer last.Release()
	next.Boards = next.Boards[:1]
	if _, err := h.Reload(within(t)); err != nil {
		t.Fatal(err)
	}
	<-last.Gone
	if _, err := s.Show(within(t), "shown"); job.KindOf(err) != job.NotFound {
		t.Errorf("a board that is gone: %v", err)
	}
}

// TestRestOfAToldBoard: a board of which a webhook is told rests once everything is told, until
// its oldest job has waited for so long that this is to be told. A host that was started since
// leaves it at rest, unless another webhook is told of it.
func TestRestOfAToldBoard(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	boards := func(waiting time.Duration) []config.Board {
		told := board("told", "store")
		told.Webhooks = []webhook.Hook{{
			Board: "told", Name: "alarm", URL: "https://example.com/", Deliveries: "deliveries", Waiting: waiting, Secrets: webhook.Secrets{make([]byte, 24)},
		}}
		return []config.Board{told, board("deliveries", "store")}
	}
	c := resting(drivers, boards(time.Hour)...)
	c.Logger = slog.New(slog.DiscardHandler)
	h, err := host.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	posted := post(t, h, "told", job.Posting{Name: "waits"})
	var due time.Time
	eventually(t, "the board rests", func() bool {
		due, err = restOf(t, drivers, "told")
		return err == nil
	})
	if want := posted.CreatedAt.Add(time.Hour); !due.Equal(want) {
		t.Errorf("it is opened at %v, want %v", due, want)
	}
	for _, waiting := range []time.Duration{time.Hour, 2 * time.Hour} {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		c.Config.Boards = boards(waiting)
		if h, err = host.Open(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := h.Started(within(t)); err != nil {
			t.Error(err)
		}
		if now, err := restOf(t, drivers, "told"); waiting == time.Hour && (err != nil || !now.Equal(due)) {
			t.Errorf("after a restart it is opened at %v, %v, want %v", now, err, due)
		}
	}
	eventually(t, "it rests for the other webhook", func() bool {
		now, err := restOf(t, drivers, "told")
		return err == nil && now.Equal(due.Add(time.Hour))
	})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
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

// TestRestKeepsWhatChanged: limits and schedules that were changed while a board was open hold when
// it is opened again.
func TestRestKeepsWhatChanged(t *testing.T) {
	t.Parallel()
	a := board("a", "store")
	a.Limits.OpenJobs = 1
	a.Schedules = []hostboard.Schedule{{Name: "before", Every: time.Hour, Job: job.Posting{Name: "tick"}}}
	c := resting(oneStore(t, false), a)
	next := c.Config
	c.Load = func() (*config.Config, error) { c := next; return &c, nil }
	h, _ := open(t, c)
	post(t, h, "a", job.Posting{Name: "x"})
	on(t, h, "a", func(ctx context.Context, _ *hostboard.Board) {
		a.Limits.OpenJobs = 2
		a.Schedules = []hostboard.Schedule{{Name: "after", Every: time.Hour, Job: job.Posting{Name: "tick"}}}
		next.Boards = []config.Board{a}
		if _, err := h.Reload(ctx); err != nil {
			t.Fatal(err)
		}
	})
	eventually(t, "the board rests", func() bool { return h.OpenBoards() == 0 })
	time.Sleep(2 * soon) // it is not opened by itself
	if h.OpenBoards() != 0 {
		t.Error("the board was opened, and nobody has called it")
	}
	on(t, h, "a", func(ctx context.Context, b *hostboard.Board) {
		results, err := b.Post(ctx, []job.Posting{{Name: "y"}, {Name: "z"}})
		if err != nil || results[0].Err != nil || job.KindOf(results[1].Err) != job.QuotaExceeded {
			t.Errorf("a second job and a third, of two that may be: %v, %v", results, err)
		}
		if list, err := b.Schedules(ctx, "", 10); err != nil || len(list) != 1 || list[0].Name != "after" {
			t.Errorf("the schedules are %+v, %v", list, err)
		}
	})
}

// TestRestInAnotherPlace: a board that rests and is given another place in its store is opened: what
// is there nobody has seen.
func TestRestInAnotherPlace(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	program := drivers["memory"]
	program.Info.Board = driver.Schema{Fields: []driver.Field{{Name: "namespace", Type: driver.String}}}
	drivers["memory"] = program
	a := board("a", "store")
	c := resting(drivers, a)
	next := c.Config
	c.Load = func() (*config.Config, error) { c := next; return &c, nil }
	h, _ := open(t, c)
	eventually(t, "the board rests", func() bool { return h.OpenBoards() == 0 && restsIn(t, drivers, "a") })
	a.Settings = []byte(`{"namespace":"other"}`)
	next.Boards = []config.Board{a}
	if _, err := h.Reload(within(t)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "somebody looks at the new place", func() bool { return h.OpenBoards() == 1 })
}

// TestRestOfTwoHosts: a board that one host opens is opened on the other one, too, so that
// it is looked after whichever of them dies.
func TestRestOfTwoHosts(t *testing.T) {
	t.Parallel()
	drivers := oneStore(t, false)
	first, _ := open(t, resting(drivers, board("idle", "store")))
	second, _ := open(t, resting(drivers, board("idle", "store")))
	for range 3 {
		eventually(t, "the board is closed on both", func() bool { return first.OpenBoards()+second.OpenBoards() == 0 })
		claim := claimedOn(t, first, "idle")
		eventually(t, "the board is open on both", func() bool { return first.OpenBoards() == 1 && second.OpenBoards() == 1 })
		on(t, first, "idle", func(ctx context.Context, b *hostboard.Board) {
			if _, err := b.Consume(ctx, []hostboard.Ref{claim}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// together is a store that counts no board until several are to be counted at the same time.
type together struct {
	driver.Driver

	asked  atomic.Int64 // now
	once   sync.Once
	enough chan struct{}
}

const countedTogether = 6

// Count waits for others, for a moment.
func (d *together) Count(ctx context.Context, board string) (driver.Counts, error) {
	defer d.asked.Add(-1)
	if d.asked.Add(1) >= countedTogether {
		d.once.Do(func() { close(d.enough) })
	}
	select {
	case <-d.enough:
		return d.Driver.Count(ctx, board)
	case <-time.After(soon):
		return driver.Counts{}, job.Errorf(job.Unavailable, "the store waits for more to count")
	}
}

// TestBoardsRestTogether: boards are not asked one after the other whether they may rest. The
// store would answer none of them.
func TestBoardsRestTogether(t *testing.T) {
	t.Parallel()
	boards := make([]config.Board, 16)
	for i := range boards {
		boards[i] = board(fmt.Sprint("b", i), "store")
	}
	slow := memdriver.Program().Wrapped(func(d driver.Driver) driver.Driver {
		return &together{Driver: d, enough: make(chan struct{})}
	})
	_, s := open(t, resting(map[string]driver.Program{"memory": slow}, boards...))
	eventually(t, "all rest", func() bool {
		return !slices.ContainsFunc(s.Boards(), func(b host.Served) bool { return b.Rests == nil })
	})
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
	empty, others := taken(), runtime.NumGoroutine() // tests that wait for their turn have some, too
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
	eventually(t, "those that were open have ended, and boards at rest take at most a quarter", func() bool {
		rest = taken() - empty
		return runtime.NumGoroutine()-others < count/2 && 4*rest <= open
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
