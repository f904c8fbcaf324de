package drivertest

import (
	"bytes"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var historyChecks = []check{
	{name: "history/window", run: historyWindow, spec: shortWindow, waits: true},
	{name: "history/keep", run: historyKeep, spec: shortWindow, waits: true},
	{name: "history/max-tombstones", run: historyMaxTombstones, spec: func(s *driver.BoardSpec) { s.MaxTombstones = 20 }},
	{name: "history/max-finals", run: historyMaxFinals, spec: func(s *driver.BoardSpec) { s.MaxFinals = 10 }},
	{name: "history/max-final-bytes", run: historyMaxFinalBytes, spec: func(s *driver.BoardSpec) { s.MaxFinalBytes = 200_000 }},
}

func shortWindow(s *driver.BoardSpec) { s.Window = 2 * time.Second }

// longWindow says that the store remembers for longer than a check can wait.
func (e *env) longWindow() bool {
	if e.status.Window < 2*time.Second {
		e.Errorf("asked for a window of 2s, the board says %v", e.status.Window)
	}
	long := e.status.Window > 10*time.Second
	if long {
		e.Logf("the board remembers for %v", e.status.Window)
	}
	return long
}

func historyWindow(e *env) {
	if e.longWindow() {
		return
	}
	p, given := e.post(), e.post()
	end := byToken(driver.Remove, e.claim(p.ID, "w"))
	claim := claimOp("w", long, given.ID)
	claim.Request, claim.Claim.Remember = random16(), true
	begun := time.Now()
	e.must(end)
	e.must(claim)
	ops := []driver.Result{e.do(end), e.do(claim), e.do(postOp(p))}
	ended := e.read(p.ID)
	if time.Since(begun) < e.status.Window {
		for i := range ops {
			if !ops[i].Repeated {
				e.Errorf("a retry within the window: got %v, want it Repeated", outcome(&ops[i]))
			}
		}
		if ended.State != job.Complete {
			e.Errorf("within the window: the job is %v, want %v", ended.State, job.Complete)
		}
	}
	e.wait(e.status.Window)
	e.eventually("a tombstone is forgotten after its window", func() bool {
		return e.readParts(p.ID, 0).State == job.Unknown
	})
	e.refused(end, job.NotFound, "after the window nobody remembers the ending")
	if r := e.do(postOp(p)); r.Kind != job.NoKind || r.Repeated {
		e.Errorf("a uuid posted again after its window: got %v, want a new job", outcome(&r))
	}
	e.state(p.ID, job.Unclaimed, "posted again after the window")
	e.state(given.ID, job.Claimed, "a claim outlives its answer")
}

func historyKeep(e *env) {
	if e.longWindow() {
		return
	}
	brief, lasting := e.post(), e.post()
	for p, keep := range map[*driver.Posting]time.Duration{brief: time.Second, lasting: time.Hour} {
		op := byToken(driver.Remove, e.claim(p.ID, "w"))
		op.Ending = &driver.Ending{Outcome: job.Consumed, Keep: keep, Data: []byte("history"), KeepPosting: true}
		e.must(op)
	}
	e.wait(e.status.Window)
	e.eventually("a final record of a second is forgotten", func() bool {
		return e.readParts(brief.ID, 0).State == job.Unknown
	})
	rec := e.state(lasting.ID, job.Complete, "its final record outlives its tombstone")
	if string(rec.Final) != "history" {
		e.Errorf("the final record became %q", rec.Final)
	}
	e.samePosting(&rec.Posting, lasting, true)
	if r := e.do(postOp(lasting)); !r.Repeated {
		e.Errorf("an equal posting, while there is a final record: got %v, want it Repeated", outcome(&r))
	}
	if list, _ := e.scan(driver.ScanRequest{Set: driver.EndedJobs}); len(list) != 1 {
		e.Errorf("a scan of ended jobs found %d, want the one that is kept", len(list))
	}
}

func historyMaxTombstones(e *env) {
	list := e.posts(50)
	ops := make([]driver.Op, len(list))
	for i, p := range list {
		ops[i] = plain(driver.Remove, p.ID)
		ops[i].Request = random16()
		e.must(ops[i])
	}
	last := ops[len(ops)-10:]
	e.eventually("no more than 20 tombstones are kept", func() bool {
		counts, err := e.driver.Count(e.Context(), e.name)
		return err == nil && counts.Tombstones <= 20 && counts.Ended <= 20
	})
	e.state(list[0].ID, job.Unknown, "ended 50 endings ago, of which 20 are remembered")
	for i := range last {
		e.state(last[i].Job, job.Complete, "ended lately")
		e.again(last[i], nil, "an ending of lately")
	}
	e.refused(ops[0], job.NotFound, "its tombstone had to make room")
}

// kept removes n jobs with final records, and returns how many are still there
// and whether the last one is.
func (e *env) kept(n, size int) (jobs []*driver.Posting, count func() (int, bool)) {
	e.Helper()
	jobs = e.posts(n)
	for _, p := range jobs {
		op := plain(driver.Remove, p.ID)
		op.Ending = &driver.Ending{Outcome: job.Consumed, Keep: time.Hour, Data: bytes.Repeat([]byte("f"), size)}
		e.must(op)
	}
	return jobs, func() (int, bool) {
		there, last := 0, false
		for i, p := range jobs {
			if len(e.read(p.ID).Final) == size {
				there++
				last = i == n-1
			}
		}
		return there, last
	}
}

func historyMaxFinals(e *env) {
	jobs, count := e.kept(30, 100)
	e.eventually("no more than 10 final records are kept, the last one among them", func() bool {
		n, last := count()
		return n <= 10 && n > 0 && last
	})
	e.finals(10, 1<<20)
	if rec := e.state(jobs[0].ID, job.Complete, "its final record had to make room, not its tombstone"); rec.Final != nil {
		e.Errorf("the oldest of 30 final records is still there, and 10 may be kept")
	}
}

func historyMaxFinalBytes(e *env) {
	_, count := e.kept(30, 20_000)
	e.eventually("no more than 200,000 bytes of final records are kept, the last one among them", func() bool {
		n, last := count()
		return n <= 10 && n > 0 && last
	})
	e.finals(10, 200_000)
}

// finals checks what Count says of the final records where some had to go: not
// more than most, and what they take.
func (e *env) finals(most, bytes int64) {
	e.Helper()
	c, err := e.driver.Count(e.Context(), e.name)
	if err != nil || c.Finals < 1 || c.Finals > most || c.FinalBytes < 100*c.Finals || c.FinalBytes > bytes {
		e.Errorf("Count says that %d final records are kept, with %d bytes (%v): want 1 to %d, and 100 for each to %d", c.Finals, c.FinalBytes, err, most, bytes)
	}
}
