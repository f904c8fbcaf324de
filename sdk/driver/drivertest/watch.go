package drivertest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var watchChecks = []check{
	{name: "watch/every-change", run: watchEveryChange},
	{name: "watch/many", run: watchMany},
	{name: "watch/resume", run: watchResume},
	{name: "watch/snapshot", run: watchSnapshot},
	{name: "watch/future", run: watchFuture},
	{name: "watch/too-late", run: watchTooLate},
	{name: "watch/ends", run: watchEnds},
	{name: "watch/break", run: watchBreak},
}

func watchEveryChange(e *env) {
	f := e.follow(e.status.Position)
	p := e.post()
	posted := e.readParts(p.ID, 0).Position
	c := e.claim(p.ID, "w")
	type step struct {
		op    driver.Op
		state job.State
		owner string
	}
	release := byToken(driver.Release, c)
	release.Reason = "abandoned for a reason"
	steps := []step{
		{byToken(driver.Extend, c), job.Claimed, "w"},
		{byToken(driver.Update, c), job.Claimed, "w"},
		{release, job.Unclaimed, "w"},
		{plain(driver.Trash, p.ID), job.Trashed, ""},
		{plain(driver.Restore, p.ID), job.Unclaimed, ""},
		{plain(driver.Trash, p.ID), job.Trashed, ""},
		{plain(driver.Purge, p.ID), job.Unknown, ""},
	}
	want := []driver.Change{
		{Event: job.Posted, Position: posted, Record: &driver.Record{State: job.Unclaimed}},
		{Event: job.ClaimedEvent, Position: c.Position, Owner: "w", Record: &driver.Record{State: job.Claimed}},
	}
	for _, s := range steps {
		r := e.must(s.op)
		want = append(want, driver.Change{
			Event: s.op.Event, Position: r.Position, Owner: s.owner, Reason: s.op.Reason, Record: &driver.Record{State: s.state},
		})
	}
	f.until(e, want[len(want)-1].Position)
	e.sameChanges(f.seen(p.ID), want)
	if got := f.seen(p.ID); len(got) > 0 && got[0].Record != nil {
		e.samePosting(&got[0].Record.Posting, p, false)
	}
}

// sameChanges compares what was seen of a job with what was done to it.
func (e *env) sameChanges(got, want []driver.Change) {
	e.Helper()
	got = slices.CompactFunc(got, func(a, b driver.Change) bool { return a.Position == b.Position }) // twice is harmless
	for i := range min(len(got), len(want)) {
		g, w := got[i], want[i]
		if g.Event != w.Event || g.Position != w.Position || g.Reason != w.Reason {
			e.Errorf("change %d is %v at %d (%q), want %v at %d (%q): each op is reported, in order",
				i, g.Event, g.Position, g.Reason, w.Event, w.Position, w.Reason)
			return
		}
		if w.Owner != "" && g.Owner != w.Owner {
			e.Errorf("change %d, %v, is by owner %q, want %q", i, g.Event, g.Owner, w.Owner)
		}
		if g.At.IsZero() {
			e.Errorf("change %d, %v, has no time", i, g.Event)
		}
		if onto := w.Event == job.Posted || w.Event == job.Restored; onto && (g.Record == nil || g.Sparse) {
			e.Errorf("change %d, %v, came without the posting: a job that comes onto the board is shown whole", i, g.Event)
		}
		if last := i == len(want)-1; last && g.Record != nil && g.Record.State != w.Record.State {
			e.Errorf("the last change, %v, shows the job %v, want %v", g.Event, g.Record.State, w.Record.State)
		}
	}
	if len(got) != len(want) {
		e.Errorf("a watcher saw %d changes of the job, %d were made", len(got), len(want))
	}
}

func watchMany(e *env) {
	followers := []*follower{e.follow(e.status.Position), e.follow(e.status.Position)}
	list := e.posts(150)
	var last driver.Position
	for _, p := range list {
		c := e.claim(p.ID, "w")
		last = e.must(byToken(driver.Remove, c)).Position
	}
	for _, f := range followers {
		f.until(e, last)
		for _, p := range list {
			if n := len(f.seen(p.ID)); n < 3 {
				e.Errorf("a watcher saw %d changes of a job that was posted, claimed and consumed: want 3", n)
				break
			}
		}
	}
}

func watchResume(e *env) {
	var positions []driver.Position
	var ids []job.ID
	for range 12 {
		p := posting("resumed")
		positions = append(positions, e.must(postOp(p)).Position)
		ids = append(ids, p.ID)
	}
	for i := 0; i < len(positions); i += 3 {
		f := e.follow(positions[i])
		f.until(e, positions[len(positions)-1])
		for n, id := range ids {
			want := 0
			if n > i {
				want = 1
			}
			if got := len(f.seen(id)); got != want {
				e.Errorf("a watch from position %d saw %d changes of the job posted at %d, want %d", positions[i], got, positions[n], want)
			}
		}
		f.cancel()
	}
}

// A standing is what a watcher knows of a job.
type standing struct {
	state    job.State
	version  uint64
	position driver.Position
}

func watchSnapshot(e *env) { e.snapshot(e, e, e, e) }

// snapshot checks that a scan and the changes after it leave no gap while others
// change the board.
func (e *env) snapshot(by ...*env) {
	e.posts(50)
	ids := make([][]job.ID, len(by))
	var writers sync.WaitGroup
	for i, writer := range by {
		writers.Go(func() { ids[i] = writer.write(40, i) })
	}
	defer writers.Wait()
	view := map[job.ID]standing{}
	start := driver.Position(0)
	for page, err := range e.driver.Scan(e.Context(), e.name, driver.ScanRequest{}) {
		if err != nil {
			e.Errorf("Scan: %v", err)
			return
		}
		if start == 0 {
			start = page.Position
		}
		for _, r := range page.Records {
			view[r.Posting.ID] = standing{r.State, r.Version, r.Position}
		}
	}
	scanned := maps.Clone(view)
	f := e.follow(start)
	writers.Wait()
	f.until(e, e.must(postOp(posting("the last one"))).Position)
	for _, c := range f.list {
		if c.Record != nil && c.Position >= view[c.Job].position {
			view[c.Job] = standing{c.Record.State, c.Record.Version, c.Position}
		}
	}
	for _, list := range ids {
		for _, id := range list {
			now, known := e.readParts(id, 0), view[id]
			if open(now.State) != open(known.state) || open(now.State) && (now.State != known.state || now.Version != known.version) {
				e.Errorf("a job is %v at version %d, and who scanned and watched thinks %v at %d: a scan from position %d showed it %s; changes: %s",
					now.State, now.Version, known.state, known.version, start, scanned[id], told(f.seen(id)))
			}
		}
	}
}

// String is for the message of a check that fails.
func (s standing) String() string {
	if s == (standing{}) {
		return "not at all"
	}
	return fmt.Sprintf("as %v at version %d and position %d", s.state, s.version, s.position)
}

// told says what a watcher was told of one job.
func told(list []driver.Change) string {
	var text []string
	for i := range list {
		c := &list[i]
		line := fmt.Sprintf("%v at %d without a record", c.Event, c.Position)
		if c.Record != nil {
			line = fmt.Sprintf("%v at %d with %v", c.Event, c.Position, standing{c.Record.State, c.Record.Version, c.Record.Position})
		}
		text = append(text, line)
	}
	if text == nil {
		return "none"
	}
	return strings.Join(text, ", ")
}

func open(s job.State) bool { return s == job.Unclaimed || s == job.Claimed }

// write posts n jobs and moves them about, and returns them.
func (e *env) write(n, seed int) []job.ID {
	ids := make([]job.ID, 0, n)
	for i := range n {
		p := posting("written")
		e.do(postOp(p))
		ids = append(ids, p.ID)
		how := (i + seed) % 5
		if how == 0 {
			continue
		}
		r := e.do(claimOp("w", long, p.ID))
		if len(r.Claims) != 1 {
			e.Errorf("a fresh job could not be claimed: %v, %s", outcome(&r), goneKinds(r.Skipped))
			continue
		}
		switch how {
		case 1:
			e.do(byToken(driver.Release, r.Claims[0]))
		case 2:
			e.do(byToken(driver.Remove, r.Claims[0]))
		case 3:
			e.do(byToken(driver.Trash, r.Claims[0]))
			e.do(plain(driver.Restore, p.ID))
		}
	}
	return ids
}

func watchFuture(e *env) {
	e.post()
	f := e.follow(e.status.Position + 1<<40)
	f.untilResync(e, "a watch from a position that never was says Resync")
	p := e.post()
	e.eventually("a watch goes on after Resync", func() bool { return len(f.seen(p.ID)) > 0 })
}

func watchTooLate(e *env) {
	if e.suite.harness.Forgetful == nil {
		e.Logf("the harness has no forgetful board")
		return
	}
	spec, remembered := e.suite.harness.Forgetful(boardName("forgetful"))
	e.name = spec.Name
	e.openBoard(func(s *driver.BoardSpec) { *s = spec })
	first := e.must(postOp(posting("first"))).Position
	e.posts(remembered + 8)
	// What a driver does at once has no order: of many posts the last one named need not
	// have the last position. One that comes after them all has.
	last := e.post()
	e.follow(first).until(e, e.readParts(last.ID, 0).Position) // so many were told, and have to be forgotten
	f := e.follow(first)
	f.untilResync(e, "a watch that comes too late says Resync")
	p := e.post()
	e.eventually("a watch goes on after Resync", func() bool { return len(f.seen(p.ID)) > 0 })
}

func watchEnds(e *env) {
	f := e.follow(e.status.Position)
	p := e.post()
	e.eventually("the first change", func() bool { return len(f.seen(p.ID)) > 0 })
	f.cancel()
	ended := func(f *follower) func() bool {
		return func() bool {
			select {
			case <-f.done:
				return true
			default:
				return false
			}
		}
	}
	e.eventually("the end of a watch whose context ended", ended(f))
	if f.err != nil && job.KindOf(f.err) != job.Interrupted {
		e.Errorf("a watch whose context ended said %v, want INTERRUPTED", f.err)
	}
	last := e.follow(e.readParts(p.ID, 0).Position)
	e.wait(10 * time.Millisecond)
	if err := e.driver.DropBoard(e.Context(), e.name); err != nil {
		e.Errorf("DropBoard: %v", err)
	}
	e.eventually("the end of a watch whose board was dropped", ended(last))
}

func watchBreak(e *env) {
	e.posts(3)
	for range e.driver.Watch(e.Context(), e.name, e.status.Position) { //nolint:errcheck // what it gives is not looked at
		break
	}
	e.post()
}
