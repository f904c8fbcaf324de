package store_test

import (
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// rolledBack starts a server that forgets, when it is killed and started again,
// what came after save.
func rolledBack(t *testing.T) (server *testserver.Redis, save, restart func()) {
	t.Helper()
	server = testserver.StartRedis(t, testserver.RedisOptions{})
	save = func() {
		if answer := server.Command("SAVE"); answer != "+OK" {
			t.Fatalf("SAVE: %s", answer)
		}
	}
	return server, save, func() {
		server.Kill()
		server.Restart()
	}
}

// hosts opens one board on n drivers that know nothing of each other.
func hosts(t *testing.T, server *testserver.Redis, n int) []*bench {
	t.Helper()
	list := make([]*bench, n)
	for i := range list {
		list[i] = newBench(t, server, nil)
	}
	return list
}

// refusedUntilOpened checks that a host that has not looked is refused, whatever
// it does.
func (b *bench) refusedUntilOpened(op driver.Op) {
	b.Helper()
	for range 3 {
		if r := b.do(op); r.Kind != job.Unavailable {
			b.Errorf("an op of a host that has not looked since Redis went back: %v (%s), want UNAVAILABLE", r.Kind, r.Message)
		}
	}
}

func TestRollbackOneHost(t *testing.T) {
	t.Parallel()
	server, save, restart := rolledBack(t)
	b := newBench(t, server, nil)
	kept := b.claim(b.post("kept"), "w")
	save()
	lost := b.claim(b.post("lost"), "w")
	memory := b.open.Witness
	restart()
	b.refusedUntilOpened(tokenOp(driver.Extend, kept))
	b.reopen()
	if b.open.Loss == "" || b.open.Generation != 2 {
		t.Errorf("opened after a rollback: generation %d, loss %q; want 2, and what was lost", b.open.Generation, b.open.Loss)
	}
	if r := b.do(tokenOp(driver.Extend, kept)); r.Kind != job.LeaseLost {
		t.Errorf("a token from before a rollback: %v, want LEASE_LOST", r.Kind)
	}
	if r := b.do(tokenOp(driver.Extend, lost)); r.Kind != job.NotFound {
		t.Errorf("a token of a job that was lost: %v, want NOT_FOUND", r.Kind)
	}
	again := b.claim(kept.Job, "w")
	if again.Token.Generation != 2 || again.Position <= lost.Position {
		t.Errorf("a claim after a rollback has token %+v at %d: want generation 2, and more than %d", again.Token, again.Position, lost.Position)
	}
	b.reopen()
	if b.open.Loss != "" {
		t.Errorf("a loss is reported twice: %s", b.open.Loss)
	}
	// The host itself was restarted, and has kept its memory of before.
	later := newBench(t, server, func(s *driver.BoardSpec) { s.Witness = memory })
	if later.open.Loss == "" {
		t.Errorf("a host with a memory from before the rollback was told nothing")
	}
}

// TestRollbackAlone has a board that boardd alone writes go back. The claims of before end
// there, though nobody asks for their jobs, and are not taken for another program's doing.
func TestRollbackAlone(t *testing.T) {
	t.Parallel()
	server, save, restart := rolledBack(t)
	b := newBench(t, server, func(s *driver.BoardSpec) { s.Settings = nil })
	kept, lapsed := b.tryClaim(b.post("kept"), "w", time.Hour).Claims[0], b.claim(b.post("lapsed"), "w")
	server.Command("DEL", "b:"+lapsed.Job.String()+".owned") // as when its lease runs out
	save()
	b.post("lost")
	restart()
	b.refusedUntilOpened(tokenOp(driver.Extend, kept))
	b.reopen()
	for _, c := range []driver.Claimed{kept, lapsed} {
		if rec := b.read(c.Job); rec.State != job.Unclaimed || rec.Holder != nil {
			t.Errorf("a job with a claim of before is read as %v of %+v, want UNCLAIMED", rec.State, rec.Holder)
		}
	}
	view := b.watch()
	b.eventually("the claims of before end", func() bool {
		first, _ := view.state(kept.Job)
		second, _ := view.state(lapsed.Job)
		return first == job.Unclaimed && second == job.Unclaimed
	})
	if got := server.Command("EXISTS", "b:"+kept.Job.String()+".owned"); got != ":0" {
		t.Errorf("TaskFlow finds an owner of the job: %s", got)
	}
	for finding, err := range b.d.(driver.Examiner).Examine(t.Context(), b.board) {
		if err != nil {
			t.Fatal(err)
		}
		if finding.Code == "foreign-writers" {
			t.Errorf("a claim of before is another program's doing: %+v", finding)
		}
	}
	b.claim(kept.Job, "w")
}

// TestRollbackMemory has only the host's memory know of what was lost.
func TestRollbackMemory(t *testing.T) {
	t.Parallel()
	server, save, restart := rolledBack(t)
	b := newBench(t, server, nil)
	b.post("kept")
	save()
	b.post("lost")
	b.reopen()
	memory := b.open.Witness
	if err := b.d.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	restart()
	next := newBench(t, server, func(s *driver.BoardSpec) { s.Witness = memory })
	if next.open.Loss == "" || next.open.Generation != 2 {
		t.Errorf("opened with the memory of before: generation %d, loss %q", next.open.Generation, next.open.Loss)
	}
	if _, err := next.d.OpenBoard(t.Context(), driver.BoardSpec{Name: "b", Witness: []byte("nonsense")}); job.KindOf(err) != job.Invalid {
		t.Errorf("a memory that is none: %v", err)
	}
	// Nobody who remembers is left: it can't be told.
	forgetful := newBench(t, server, nil)
	if forgetful.open.Loss != "" || forgetful.open.Generation != 2 {
		t.Errorf("opened without a memory: generation %d, loss %q", forgetful.open.Generation, forgetful.open.Loss)
	}
}

func TestRollbackTwoHosts(t *testing.T) {
	t.Parallel()
	server, save, restart := rolledBack(t)
	list := hosts(t, server, 2)
	a, b := list[0], list[1]
	first := a.claim(a.post("kept"), "a")
	second := b.claim(b.post("kept too"), "b")
	save()
	a.post("lost")
	restart()
	a.refusedUntilOpened(tokenOp(driver.Extend, first))
	a.reopen()
	if a.open.Loss == "" || a.open.Generation != 2 {
		t.Errorf("the host that saw the loss: generation %d, loss %q", a.open.Generation, a.open.Loss)
	}
	b.refusedUntilOpened(tokenOp(driver.Extend, second))
	b.reopen()
	if b.open.Loss == "" || b.open.Generation != 2 {
		t.Errorf("the other host: generation %d, loss %q", b.open.Generation, b.open.Loss)
	}
	if r := b.do(tokenOp(driver.Extend, second)); r.Kind != job.LeaseLost {
		t.Errorf("the other host's token from before: %v, want LEASE_LOST", r.Kind)
	}
	b.claim(second.Job, "b")
}

// TestRollbackRewritten has another host go on where Redis went back to, beyond
// what the first one saw, before that looks.
func TestRollbackRewritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lost, after []int }{ // posts of each call
		"one by one":                  {[]int{1}, []int{1, 1, 1, 1, 1}},
		"in batches":                  {[]int{2}, []int{5}},
		"in batches that end earlier": {[]int{3}, []int{1, 1, 4}},
		"after what was not lost":     {[]int{1, 1, 2}, []int{2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rewritten(t, c.lost, c.after)
		})
	}
}

func rewritten(t *testing.T, lost, after []int) {
	t.Helper()
	server, save, restart := rolledBack(t)
	list := hosts(t, server, 2)
	a, b := list[0], list[1]
	b.post("kept")
	save()
	for _, n := range lost {
		a.postAtOnce(n)
	}
	restart()
	b.do(driver.Op{Kind: driver.Purge, Job: job.ID{1}}) // it meets the new server
	b.reopen()
	for _, n := range after {
		b.postAtOnce(n)
	}
	if b.open.Loss != "" {
		t.Errorf("this host had seen nothing of what was lost, and says %q", b.open.Loss)
	}
	a.reopen()
	if a.open.Loss == "" || a.open.Generation != 2 {
		t.Errorf("positions were given anew, and the host that had seen the old ones opens with generation %d, loss %q", a.open.Generation, a.open.Loss)
	}
}

// TestRollbackAway has the host be away that saw what was lost, while another one goes on
// beyond it. With its memory of before it is told, however often Redis was restarted since,
// and however little was lost; and a host that lost nothing is told nothing.
func TestRollbackAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lost, restarts int }{
		"one change":             {1, 1},
		"several":                {4, 1},
		"restarted again":        {1, 2},
		"as often as is kept":    {1, 4},
		"nothing":                {0, 1},
		"nothing, more often":    {0, 6},
		"nothing, not restarted": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			away(t, c.lost, c.restarts)
		})
	}
}

func away(t *testing.T, lost, restarts int) {
	t.Helper()
	server, save, restart := rolledBack(t)
	list := hosts(t, server, 2)
	a, b := list[0], list[1]
	a.post("kept")
	a.reopen() // the board has a head by now
	memory := a.open.Witness
	seen := a.postAtOnce(1)
	save()
	for range lost {
		seen = a.postAtOnce(1)
	}
	if err := a.d.Close(); err != nil {
		t.Fatal(err)
	}
	for range restarts {
		restart()
		b.do(driver.Op{Kind: driver.Purge, Job: job.ID{1}}) // it meets the new server
		b.reopen()
		if b.open.Loss != "" {
			t.Errorf("this host had seen nothing of what was lost, and says %q", b.open.Loss)
		}
		b.postAtOnce(3)
		b.postAtOnce(3)
		save()
	}
	later := newBench(t, server, func(s *driver.BoardSpec) { s.Witness, s.Seen = memory, seen })
	if told := later.open.Loss != ""; told != (lost > 0) || later.open.Generation != uint64(1+min(lost, 1)) {
		t.Errorf("opened with what was seen before %d changes were lost: generation %d, loss %q", lost, later.open.Generation, later.open.Loss)
	}
	after := newBench(t, server, func(s *driver.BoardSpec) { s.Witness, s.Seen = later.open.Witness, later.open.Position })
	if after.open.Loss != "" {
		t.Errorf("opened once more: %q", after.open.Loss)
	}
}

// postAtOnce posts n jobs with one call, and returns the last position.
func (b *bench) postAtOnce(n int) (last driver.Position) {
	b.Helper()
	ops := make([]driver.Op, n)
	for i := range ops {
		p := &driver.Posting{Name: "j", Digest: [16]byte{9}}
		_, _ = rand.Read(p.ID[:]) // never fails
		ops[i] = driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Request: p.ID}
	}
	for _, r := range b.d.Apply(b.Context(), b.board, ops) {
		if r.Kind != job.NoKind {
			b.Fatalf("post: %v %s", r.Kind, r.Message)
		}
		last = r.Position
	}
	return last
}

// TestFlushed loses everything without a restart.
func TestFlushed(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	c := b.claim(b.post("lost"), "w")
	server.Command("FLUSHALL")
	b.refusedUntilOpened(tokenOp(driver.Extend, c))
	b.reopen()
	if !strings.Contains(b.open.Loss, "knows nothing") || b.open.Generation != 2 {
		t.Errorf("after FLUSHALL: generation %d, loss %q", b.open.Generation, b.open.Loss)
	}
	b.claim(b.post("new"), "w")
}

// A worker posts jobs and works on them, and repeats what it got no answer to.
type worker struct {
	*bench
	board   string
	done    []job.ID // consumed, and acknowledged
	unknown int
}

func (w *worker) sure(op driver.Op) driver.Result {
	for {
		r := w.d.Apply(w.Context(), w.board, []driver.Op{op})[0]
		switch r.Kind {
		case job.OutcomeUnknown:
			w.unknown++
		case job.Unavailable:
			// Whoever was away is looked at again.
			status, err := w.d.OpenBoard(w.Context(), w.spec)
			if err == nil && status.Loss != "" {
				w.Errorf("everything is on the disk, and the board says %s", status.Loss)
			}
		default:
			return r
		}
		if w.Context().Err() != nil {
			return r
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (w *worker) work(n int, seed byte) {
	for i := range n {
		p := &driver.Posting{Name: "j", Details: []byte(`{}`), Digest: [16]byte{9}}
		p.ID = job.ID{seed, byte(i >> 8), byte(i), 1}
		nonce := [16]byte{seed, byte(i >> 8), byte(i), 2}
		if r := w.sure(driver.Op{Kind: driver.Post, Job: p.ID, Posting: p, Request: nonce}); r.Kind != job.NoKind {
			w.Errorf("post: %v %s", r.Kind, r.Message)
		}
		spec := &driver.ClaimSpec{Owner: "w", Lease: time.Hour, Count: 1, Candidates: []driver.Candidate{{Job: p.ID, Nonce: nonce}}}
		r := w.sure(driver.Op{Kind: driver.Claim, Claim: spec, Request: nonce})
		if len(r.Claims) != 1 {
			w.Errorf("claim: %v %+v", r.Kind, r.Skipped)
			continue
		}
		end := tokenOp(driver.Remove, r.Claims[0])
		end.Request = nonce
		if r := w.sure(end); r.Kind != job.NoKind {
			w.Errorf("consume: %v %s", r.Kind, r.Message)
			continue
		}
		w.done = append(w.done, p.ID)
	}
}

// TestKilledRedis kills the server, which has everything on its disk, again and
// again under load.
func TestKilledRedis(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{AppendOnly: true})
	b := newBench(t, server, nil)
	kept := b.tryClaim(b.post("claimed all the time"), "w", time.Hour).Claims[0]
	var workers [4]*worker
	var running sync.WaitGroup
	for i := range workers {
		workers[i] = &worker{bench: b, board: b.board}
		running.Go(func() { workers[i].work(60, byte(i+1)) })
	}
	stop := make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
			}
			server.Kill()
			server.Restart()
		}
	})
	running.Wait()
	close(stop)
	killing.Wait()
	unknown := 0
	for _, w := range workers {
		unknown += w.unknown
		for _, id := range w.done {
			if rec := b.read(id); rec.State != job.Complete || rec.Outcome != job.Consumed {
				t.Errorf("a job that was consumed is %v, %v", rec.State, rec.Outcome)
			}
		}
	}
	t.Logf("%d answers did not come", unknown)
	b.reopen()
	b.must(tokenOp(driver.Remove, kept))
	if counts, err := b.d.Count(t.Context(), b.board); err != nil || counts.Open != 0 {
		t.Errorf("all jobs were consumed, and %d are open (%v)", counts.Open, err)
	}
}

// TestHeadTakenAway has somebody delete the board's head, and nobody who
// remembers it.
func TestHeadTakenAway(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	last := b.claim(b.post("job"), "w").Position
	server.Command("DEL", "octavia_jobboard:boardd:head")
	next := newBench(t, server, nil)
	if p := next.claim(next.post("another"), "w").Position; p <= last {
		t.Errorf("a change has position %d, before there was %d", p, last)
	}
}

// TestHeadTakenAwayWhileOpen has the same happen below a host that goes on: what it counts never
// falls below nothing, and tokens go on above those of before.
func TestHeadTakenAwayWhileOpen(t *testing.T) {
	t.Parallel()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	b := newBench(t, server, nil)
	consumed, released := b.claim(b.post("consumed"), "w"), b.claim(b.post("released"), "w")
	claimed := func(when string, want int64) {
		t.Helper()
		if got := b.counts().Claimed; got != want {
			t.Errorf("%s: %d jobs are claimed, want %d", when, got, want)
		}
	}
	consume := func(c driver.Claimed) {
		t.Helper()
		op := tokenOp(driver.Remove, c)
		op.Lease, op.Event = 0, job.ConsumedEvent
		b.must(op)
	}
	server.Command("DEL", "octavia_jobboard:boardd:head")
	b.must(tokenOp(driver.Release, released))
	claimed("a claim of before was released", 0)
	again := b.claim(released.Job, "w")
	if again.Token.Epoch <= released.Token.Epoch {
		t.Errorf("a new token has epoch %d, before there was %d", again.Token.Epoch, released.Token.Epoch)
	}
	claimed("its job was claimed again", 1)
	consume(again)
	consume(consumed)
	claimed("the other claim of before ended", 0)
	b.claim(b.post("new"), "w")
	claimed("a new job was claimed", 1)
	server.Command("HSET", "octavia_jobboard:boardd:head", "claimed", "-3")
	claimed("a driver of before has counted below nothing", 0)
}
