package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// copying is a board at work that is brought to another store.
type copying struct {
	*testing.T
	*Copy
	board *Board
	rand  *rand.Rand
	ids   []job.ID
	held  map[job.ID]job.Claim
}

func startCopying(t *testing.T, seed uint64, from driver.Driver) *copying {
	t.Helper()
	c := &copying{
		T: t, board: start(t, from, Spec{History: 72 * time.Hour}), rand: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // of a test
		held: map[job.ID]job.Claim{}, Copy: &Copy{From: from, To: openStore(t), Key: "test", Move: [16]byte{1}, History: 72 * time.Hour},
	}
	if _, err := c.board.PutBatch(t.Context(), "batch", nil, 1000); err != nil {
		t.Fatal(err)
	}
	return c
}

// startedCopy is one of which everything was brought once.
func startedCopy(t *testing.T) *copying {
	t.Helper()
	c := startCopying(t, 1, openStore(t))
	c.work(50)
	c.receive()
	if err := c.Everything(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *copying) position() (at driver.Position) {
	for page, err := range c.From.Scan(c.Context(), c.Key, driver.ScanRequest{Limit: 1}) {
		if err != nil {
			c.Fatal(err)
		}
		at = page.Position
	}
	return at
}

// receive has the second store receive from behind where the first one is.
func (c *copying) receive() {
	c.Helper()
	spec := driver.BoardSpec{Name: c.Key}
	_, err := c.To.OpenBoard(c.Context(), spec)
	m := driver.Move{Step: driver.Receive, ID: c.Move, Generation: c.board.Status().Generation, Position: c.position()}
	err = errors.Join(err, c.To.(driver.Mover).MoveBoard(c.Context(), c.Key, m)) //nolint:forcetypeassert // memdriver is one
	target, other := c.To.OpenBoard(c.Context(), spec)
	if err = errors.Join(err, other); err != nil {
		c.Fatal(err)
	}
	c.Target = target
}

// one does something at random to a job at random. What is refused changes nothing.
func (c *copying) one() {
	ctx := c.Context()
	if len(c.ids) < 8 || c.rand.IntN(6) == 0 {
		p := job.Posting{Name: fmt.Sprint(len(c.ids)), Details: fmt.Appendf(nil, `{"n":%d}`, len(c.ids)), Batch: "batch"}
		if key := c.rand.IntN(8); key < 3 {
			p.Unique.Key = fmt.Sprint("key", key)
		}
		if r, err := c.board.Post(ctx, []job.Posting{p}); err == nil && r[0].Err == nil && !r[0].Existing {
			c.ids = append(c.ids, r[0].Job.ID)
		}
		return
	}
	id := c.ids[c.rand.IntN(len(c.ids))]
	claim, held := c.held[id]
	ref := Ref{ID: id, Token: c.board.FormatToken(id, claim.Token)}
	switch what := c.rand.IntN(8); {
	case what == 0 && held:
		_, _ = c.board.Consume(ctx, []Ref{ref})
		delete(c.held, id)
	case what == 1 && held:
		_, _ = c.board.Abandon(ctx, []Ref{ref}, AbandonOptions{Reason: "not today"})
		delete(c.held, id)
	case what == 2 && held:
		_, _ = c.board.AppendLog(ctx, LogRequest{Ref: ref, Entries: []job.LogEntry{{Type: "info", Message: "a line"}}})
	case what == 3:
		_, _ = c.board.Trash(ctx, nil, []job.ID{id}, "wrong")
	case what == 4:
		_, _ = c.board.Restore(ctx, []job.ID{id})
	case what == 5:
		_, _ = c.board.Purge(ctx, []job.ID{id})
	default:
		if r, err := c.board.Claim(ctx, ClaimRequest{Owner: "w", IDs: []job.ID{id}}); err == nil && len(r.Claims) == 1 {
			c.held[id] = r.Claims[0]
		}
	}
}

func (c *copying) work(n int) {
	for range n {
		c.one()
		time.Sleep(time.Millisecond) // so that each job was posted at a time of its own
	}
	synctest.Wait()
}

// freeze has the first store refuse changes.
func (c *copying) freeze() {
	c.Helper()
	if err := c.From.(driver.Mover).MoveBoard(c.Context(), c.Key, driver.Move{Step: driver.Freeze, ID: c.Move}); err != nil { //nolint:forcetypeassert // memdriver is one
		c.Fatal(err)
	}
	c.Frozen = time.Now()
}

// rest freezes the board, and brings what is left.
func (c *copying) rest() {
	c.Helper()
	c.freeze()
	if err := errors.Join(c.Rest(c.Context(), c.position()), c.Documents(c.Context())); err != nil {
		c.Fatalf("the rest is not brought: %v", err)
	}
}

// counted is what a store and the batch's record in it say of the batch.
func (c *copying) counted(d driver.Driver) driver.Group {
	c.Helper()
	groups, err := c.tallies(c.Context(), d, []driver.Op{{Kind: driver.Tally, Group: "batch"}})
	doc, other := d.Documents().Get(c.Context(), driver.Space{Board: c.Key, Name: driver.SettingSpace}, batchPrefix+"batch")
	var r batchRecord
	if err = errors.Join(err, other, json.Unmarshal(doc.Data, &r)); err != nil {
		c.Fatal(err)
	}
	return *r.Before.and(groups[0])
}

// same checks that both stores have the same jobs.
func (c *copying) same() {
	c.Helper()
	here, err := c.From.Read(c.Context(), c.Key, c.ids, exportParts)
	there, other := c.To.Read(c.Context(), c.Key, c.ids, exportParts)
	if err = errors.Join(err, other); err != nil {
		c.Fatal(err)
	}
	for i := range c.ids {
		for _, r := range []*driver.Record{&here[i], &there[i]} { // what is a store's own
			r.Version, r.Position, r.ModifiedAt, r.Posting.Sequence = 0, 0, time.Time{}, 0
			if r.State == job.Complete {
				r.Posting.CreatedAt = time.Time{}
			}
		}
		if h, came := here[i].Holder, there[i].Holder; h != nil && came != nil && h.Remaining <= came.Remaining {
			h.Remaining = came.Remaining // a whole lease
		}
		if diff := cmp.Diff(here[i], there[i]); diff != "" {
			c.Errorf("job %d is another one in the second store (-first +second):\n%s", i, diff)
		}
	}
	left, err := c.From.Count(c.Context(), c.Key)
	came, other := c.To.Count(c.Context(), c.Key)
	if err = errors.Join(err, other); err != nil || left.Open != came.Open || left.Claimed != came.Claimed || left.Trashed != came.Trashed {
		c.Errorf("the first store has %+v, and the second %+v, %v", left, came, err)
	}
	if diff := cmp.Diff(c.counted(c.From), c.counted(c.To)); diff != "" {
		c.Errorf("the batch counts otherwise in the second store (-first +second):\n%s", diff)
	}
	if got, want := c.order(c.To), c.order(c.From); !slices.Equal(got, want) {
		c.Errorf("the open jobs are in the order %v: want %v", got, want)
	}
}

// order is the open jobs of a store in the order of their posts.
func (c *copying) order(d driver.Driver) []job.ID {
	x := exporter{from: keptBoard{d, c.Key}}
	ids, _, err := x.open(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	return ids
}

// TestCopyAtWork brings a board that is changed all the time, in rounds, and compares what came.
func TestCopyAtWork(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		bubble(t, func(t *testing.T) {
			c := startCopying(t, seed, openStore(t))
			c.work(200)
			c.receive()
			stop := c.Follow(t.Context(), c.position())
			c.work(40)
			if err := c.Everything(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				c.work(60)
				if err := c.Round(t.Context()); err != nil {
					t.Fatalf("seed %d: a round: %v", seed, err)
				}
			}
			if counts, err := c.To.Count(t.Context(), c.Key); err != nil || counts.Claimed != 0 {
				t.Errorf("before the freeze %d claims came along, %v", counts.Claimed, err)
			}
			c.work(30)
			brought := c.Brought()
			c.rest()
			c.same()
			stop()
			c.goOn(brought)
			if t.Failed() {
				t.Logf("with seed %d", seed)
			}
		})
	}
}

// goOn has another host go on with the rest, which is there already.
func (c *copying) goOn(brought driver.Position) {
	c.Helper()
	next := &Copy{From: c.From, To: c.To, Key: c.Key, Move: c.Move, Target: c.Target, History: c.History}
	defer next.Follow(c.Context(), brought)()
	c.Copy = next
	before, err := c.To.Count(c.Context(), c.Key)
	c.rest()
	after, other := c.To.Count(c.Context(), c.Key)
	if err = errors.Join(err, other); err != nil || before.Open != after.Open || before.Claimed != after.Claimed {
		c.Errorf("who went on made %+v of %+v, %v", after, before, err)
	}
	c.same()
}

// TestCopyOfAnOpenTick: the job that a schedule has open is brought along, and no other is posted
// beside it in the second store.
func TestCopyOfAnOpenTick(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := startCopying(t, 1, openStore(t))
		id := skipping(t, c.board)
		held := refOf(c.board, claimOne(t, c.board, ClaimRequest{IDs: []job.ID{id}, Lease: time.Hour}))
		c.receive()
		defer c.Follow(t.Context(), c.position())()
		if err := c.Everything(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.rest()
		if err := c.To.(driver.Mover).MoveBoard(t.Context(), c.Key, driver.Move{Step: driver.Admit, ID: c.Move}); err != nil { //nolint:forcetypeassert // memdriver is one
			t.Fatal(err)
		}
		there := start(t, c.To, Spec{})
		leavesOut(t, there, id, func() { consume(t, there, held) })
	})
}

// TestCopyForgotten checks that a copy says so when the first store no longer knows what changed.
func TestCopyForgotten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := startedCopy(t)
		defer c.Follow(t.Context(), c.position()+1)() // to which the board never came
		synctest.Wait()
		if err := c.Round(t.Context()); !errors.Is(err, ErrForgotten) {
			t.Errorf("a round after changes that are forgotten: %v, want %v", err, ErrForgotten)
		}
		if err := c.Heard(t.Context(), c.position()+2); !errors.Is(err, ErrForgotten) {
			t.Errorf("waiting for changes that are forgotten: %v, want %v", err, ErrForgotten)
		}
	})
}

// TestCopyTimeouts checks that a claim whose job has a timeout stands in the second store for no
// longer than that says, without the time for which the board was frozen.
func TestCopyTimeouts(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := startCopying(t, 1, openStore(t))
		c.receive()
		defer c.Follow(t.Context(), c.position())()
		cases := []struct{ timeout, lease, want time.Duration }{
			{0, time.Minute, time.Minute},
			{10 * time.Second, time.Minute, 6 * time.Second},
			{10 * time.Second, 5 * time.Second, 5 * time.Second},
			{4500 * time.Millisecond, time.Minute, job.MinLease},
		}
		var ids []job.ID
		for _, one := range cases {
			r, err := c.board.Post(t.Context(), []job.Posting{{Name: "timed", Timeout: one.timeout}})
			if err == nil {
				ids = append(ids, r[0].Job.ID)
				_, err = c.board.Claim(t.Context(), ClaimRequest{Owner: "w", IDs: ids[len(ids)-1:], Lease: one.lease})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * time.Second)
		c.freeze()
		time.Sleep(time.Second)
		err := c.Rest(t.Context(), c.position())
		came, other := c.To.Read(t.Context(), c.Key, ids, 0)
		if err = errors.Join(err, other); err != nil {
			t.Fatal(err)
		}
		late, holder := came[0], *came[0].Holder // of whose end its first board had not heard
		late.Holder, holder.Remaining = &holder, -2*time.Second
		if op := c.copier(t.Context()).holding(&late); op == nil || op.Lease != job.MinLease {
			t.Errorf("a claim whose lease had run out before the board was frozen comes along as %+v: want it to end in %v", op, job.MinLease)
		}
		for i, one := range cases {
			if h := came[i].Holder; h == nil || h.Remaining.Round(time.Millisecond) != one.want {
				t.Errorf("with the timeout %v and the lease %v the claim came along as %+v: want it to have %v", one.timeout, one.lease, h, one.want)
			}
		}
	})
}

// TestCopyUntold checks that a store which does not tell of the last changes does not keep a
// board frozen for good.
func TestCopyUntold(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		c := startedCopy(t)
		defer c.Follow(t.Context(), c.position())()
		if err := c.Rest(t.Context(), c.position()+1<<20); job.KindOf(err) != job.Unavailable {
			t.Errorf("the rest, up to a position that no watcher is told of: %v, want %v", err, job.Unavailable)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Rest(ctx, c.position()+1<<20); job.KindOf(err) != job.Interrupted {
			t.Errorf("a move that was ended meanwhile: %v, want %v", err, job.Interrupted)
		}
	})
}
