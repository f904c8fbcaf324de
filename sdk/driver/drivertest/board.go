package drivertest

import (
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var boardChecks = []check{
	{name: "board/status", run: boardStatus},
	{name: "board/again", run: boardAgain},
	{name: "board/drop", run: boardDrop},
	{name: "board/drop-at-once", run: boardDropAtOnce},
	{name: "board/not-open", run: boardNotOpen},
	{name: "board/observe", run: boardObserve},
	{name: "board/beside", run: boardBeside},
	{name: "board/health", run: boardHealth},
	{name: "board/usage", run: boardUsage},
}

func boardStatus(e *env) {
	s, c := e.status, e.caps()
	if s.Generation == 0 || s.Window <= 0 || s.Loss != "" {
		e.Errorf("a new board has generation %d, window %v and loss %q: want at least 1, more than 0, and none", s.Generation, s.Window, s.Loss)
	}
	switch s.Durability {
	case driver.Volatile, driver.Delayed, driver.Durable, driver.Replicated:
	default:
		e.Errorf("the durability is %q", s.Durability)
	}
	if len(c.Encodings) == 0 || c.MaxBatch < 1 || c.InFlight < 1 || c.MaxCandidates < 1 || c.MaxDetails < 1 || c.MaxRecord < 1 {
		e.Errorf("the capabilities are not complete: %+v", c)
	}
	for i, name := range c.Encodings {
		p := posting("encoded")
		switch name {
		case job.JSON.String():
		case job.Msgpack.String():
			p.Encoding, p.Details = job.Msgpack, []byte{0x81, 0xa1, 'a', 0x01}
		default:
			e.Errorf("encoding %d is %q, which nobody knows", i, name)
			continue
		}
		p.Digest = digest(p)
		e.must(postOp(p))
		rec := e.read(p.ID)
		e.samePosting(&rec.Posting, p, true)
	}
}

func boardAgain(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	spec := e.suite.spec(e.name)
	spec.Witness, spec.Window = e.status.Witness, 2*time.Hour
	status, err := e.driver.OpenBoard(e.Context(), spec)
	if err != nil {
		e.Fatalf("OpenBoard again: %v", err)
	}
	if status.Generation != e.status.Generation || status.Loss != "" || status.Position < c.Position {
		e.Errorf("opened again: generation %d, loss %q, position %d; want %d, none, at least %d",
			status.Generation, status.Loss, status.Position, e.status.Generation, c.Position)
	}
	e.state(p.ID, job.Claimed, "its board was opened again")
	e.must(byToken(driver.Remove, c))
}

func boardDrop(e *env) {
	p := e.post()
	e.must(plain(driver.Trash, e.post().ID))
	e.must(plain(driver.Remove, e.post().ID))
	e.put(e.shelf(), "a", "b", 0)
	for range 2 { // a board that does not exist is dropped already
		if err := e.driver.DropBoard(e.Context(), e.name); err != nil {
			e.Fatalf("DropBoard: %v", err)
		}
	}
	if _, err := e.driver.OpenBoard(e.Context(), e.suite.spec(e.name)); err != nil {
		e.Fatalf("OpenBoard after DropBoard: %v", err)
	}
	e.state(p.ID, job.Unknown, "its board was dropped")
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs, driver.EndedJobs} {
		if list, _ := e.scan(driver.ScanRequest{Set: set}); len(list) > 0 {
			e.Errorf("a dropped board, opened again, has %d jobs in set %d", len(list), set)
		}
	}
	_, err := e.driver.Documents().Get(e.Context(), e.shelf(), "a")
	e.wantKind(err, job.NotFound, "Get of a dropped board's document")
	e.must(postOp(p))
}

// boardDropAtOnce has a board opened and dropped by several at once, as when its move ends while
// somebody asks for the next one. Whoever opens it afterwards has a board that works.
func boardDropAtOnce(e *env) {
	const rounds = 20
	e.name = boardName("dropped-at-once")
	open := func() error {
		_, err := e.driver.OpenBoard(e.Context(), e.suite.spec(e.name))
		return err
	}
	drop := func() error { return e.driver.DropBoard(e.Context(), e.name) }
	e.Cleanup(func() { _ = drop() })
	for range rounds {
		var calls sync.WaitGroup
		for _, call := range []func() error{open, drop, open, drop} {
			calls.Go(func() {
				if kind := job.KindOf(call()); kind != job.NoKind && kind != job.Unavailable && kind != job.Precondition {
					e.Errorf("a board opened and dropped at once: got %v, want it done, UNAVAILABLE or FAILED_PRECONDITION", kind)
				}
			})
		}
		calls.Wait()
		status, err := e.driver.OpenBoard(e.Context(), e.suite.spec(e.name))
		if err != nil {
			e.Fatalf("OpenBoard after that: %v", err)
		}
		f := e.follow(status.Position)
		p := posting("after")
		e.must(postOp(p))
		e.eventually("a watcher of a board that was dropped and opened at once is shown a post", func() bool { return len(f.seen(p.ID)) > 0 })
		f.cancel()
	}
}

func boardNotOpen(e *env) {
	e.name = boardName("never opened")
	r := e.do(postOp(posting("nowhere")))
	if r.Kind != job.Precondition {
		e.Errorf("Apply on a board that is not open: got %v, want FAILED_PRECONDITION", outcome(&r))
	}
	_, err := e.driver.Read(e.Context(), e.name, []job.ID{newID()}, 0)
	e.wantKind(err, job.Precondition, "Read on a board that is not open")
	_, err = e.driver.Count(e.Context(), e.name)
	e.wantKind(err, job.Precondition, "Count on a board that is not open")
	steps := 0
	for _, err := range e.driver.Scan(e.Context(), e.name, driver.ScanRequest{}) {
		e.wantKind(err, job.Precondition, "Scan on a board that is not open")
		steps++
	}
	for _, err := range e.driver.Watch(e.Context(), e.name, 0) {
		e.wantKind(err, job.Precondition, "Watch on a board that is not open")
		steps++
	}
	if steps != 2 {
		e.Errorf("a scan and a watch on a board that is not open took %d steps: want one error each", steps)
	}
}

// boardObserve checks that an observed board can be read and not be changed.
func boardObserve(e *env) {
	p := e.post()
	c := e.claim(p.ID, "w")
	aside := e.post()
	e.must(plain(driver.Trash, aside.ID))
	v := e.put(e.shelf(), "a", "b", 0)
	before, beforeAside := e.read(p.ID), e.read(aside.ID)
	spec := e.suite.spec(e.name)
	spec.Observe = true
	if _, err := e.driver.OpenBoard(e.Context(), spec); err != nil {
		e.Fatalf("OpenBoard to observe: %v", err)
	}
	ops := []driver.Op{
		postOp(posting("not here")), claimOp("w", long, p.ID), plain(driver.Restore, aside.ID), plain(driver.Purge, aside.ID),
		plain(driver.Update, p.ID), plain(driver.Remove, p.ID), plain(driver.Trash, p.ID),
	}
	for _, kind := range tokenOps {
		ops = append(ops, byToken(kind, c))
	}
	for _, op := range ops {
		e.refused(op, job.Precondition, "the board is only observed")
	}
	e.unchanged(&before, "an op on an observed board")
	e.unchanged(&beforeAside, "an op on an observed board")
	_, err := e.driver.Documents().Put(e.Context(), e.shelf(), driver.Document{Name: "a", Data: []byte("c")}, v)
	e.wantKind(err, job.Precondition, "Put on an observed board")
	e.wantKind(e.driver.Documents().Delete(e.Context(), e.shelf(), "a", v), job.Precondition, "Delete on an observed board")
	if list, _ := e.scan(driver.ScanRequest{}); len(list) != 1 {
		e.Errorf("a scan of an observed board found %d jobs, want 1", len(list))
	}
	if _, err := e.driver.OpenBoard(e.Context(), e.suite.spec(e.name)); err != nil {
		e.Fatalf("OpenBoard to serve: %v", err)
	}
	e.must(byToken(driver.Remove, c))
}

// boardBeside checks that two boards know nothing of each other.
func boardBeside(e *env) {
	other := &env{T: e.T, suite: e.suite, driver: e.driver, name: boardName("beside")}
	other.openBoard(nil)
	p := e.post()
	other.state(p.ID, job.Unknown, "posted on another board")
	other.must(postOp(p)) // the same uuid
	c := e.claim(p.ID, "w")
	other.state(p.ID, job.Unclaimed, "claimed on another board")
	other.taken(claimOp("w", long, newID()), job.NotFound, "not here")
	mine := other.claim(p.ID, "w")
	other.refused(byToken(driver.Remove, c), job.LeaseLost, "the token is another board's")
	e.must(byToken(driver.Remove, c))
	other.state(p.ID, job.Claimed, "consumed on another board")
	other.must(byToken(driver.Remove, mine))
}

func boardHealth(e *env) {
	if err := e.driver.Health(e.Context()); err != nil {
		e.Errorf("Health: %v", err)
	}
	if e.driver.Documents() == nil {
		e.Errorf("Documents is nil")
	}
}

// usageJobs is how many jobs are on the board when the store is asked how much it holds,
// usageDetails how large the details of each are, and usageKnown how long it may take until
// the first answer is there.
const (
	usageJobs    = 16
	usageDetails = 64 << 10
	usageKnown   = time.Second
)

// boardUsage has a store whose size is known hold at least what was posted, as small as that
// can be made: one that counts KiB or pages, or its own memory in place of the store's, is
// found.
func boardUsage(e *env) {
	m, ok := e.driver.(driver.Measurer)
	if !ok {
		return
	}
	least := int64(0)
	for range usageJobs {
		p := posting("sized")
		p.Details = random(min(usageDetails, e.caps().MaxDetails))
		p.Digest = digest(p)
		e.must(postOp(p))
		least += int64(len(p.Details)) / 2 // in hexadecimal
	}
	measure := func() int64 {
		u, err := m.Measure(e.Context())
		if err != nil {
			e.Fatalf("Measure: %v", err)
		}
		if u.Used < 0 || u.Limit < 0 {
			e.Fatalf("the store holds %d bytes of %d: want 0 for what is not known", u.Used, u.Limit)
		}
		return u.Used
	}
	used := measure()
	for deadline := time.Now().Add(usageKnown); used == 0 && time.Now().Before(deadline); used = measure() {
		e.wait(usageKnown / 20)
	}
	if used == 0 {
		return
	}
	e.eventually(fmt.Sprintf("the store, of %d bytes at first, holds %d or more, which is what was posted", used, least), func() bool {
		return measure() >= least // a figure may be some seconds old
	})
}

// random makes a JSON object of n bytes, half of which cannot be made smaller.
func random(n int) []byte {
	data := make([]byte, (n-8)/2)
	_, _ = rand.Read(data) // never fails
	return fmt.Appendf(nil, `{"d":"%x"}`, data)
}
