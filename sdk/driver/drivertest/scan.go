package drivertest

import (
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var scanChecks = []check{
	{name: "scan/open", run: scanOpen},
	{name: "scan/cursor", run: scanCursor},
	{name: "scan/sets", run: scanSets},
	{name: "scan/order", run: scanOrder},
	{name: "scan/parts", run: scanParts},
	{name: "scan/empty", run: scanEmpty},
	{name: "scan/break", run: scanBreak},
	{name: "scan/under-change", run: scanUnderChange},
	{name: "scan/position", run: scanPosition},
}

// scan goes through one scan and returns what it found and where to go on.
func (e *env) scan(req driver.ScanRequest) ([]driver.Record, string) {
	e.Helper()
	var list []driver.Record
	next, pages := "", 0
	for page, err := range e.driver.Scan(e.Context(), e.name, req) {
		if err != nil {
			e.Fatalf("Scan: %v", err)
		}
		if pages > 0 && next == "" {
			e.Errorf("a page came after one without Next")
		}
		for _, bad := range page.Bad {
			e.Errorf("Scan: there is a record that cannot be read, %s: %s", bad.Key, bad.Problem)
		}
		list, next = append(list, page.Records...), page.Next
		pages++
	}
	if pages == 0 {
		e.Errorf("a scan without a page: want at least one")
	}
	if req.Limit > 0 && len(list) > req.Limit {
		e.Errorf("a scan with limit %d found %d records", req.Limit, len(list))
	}
	return list, next
}

// exactly checks that a scan found each job, and none twice.
func (e *env) exactly(list []driver.Record, want map[job.ID]job.State, what string) {
	e.Helper()
	seen := map[job.ID]bool{}
	for _, r := range list {
		state, ok := want[r.Posting.ID]
		switch {
		case !ok:
			e.Errorf("%s: found job %v, which is not in the set", what, r.Posting.ID)
		case seen[r.Posting.ID]:
			e.Errorf("%s: found job %v twice, and nothing changed meanwhile", what, r.Posting.ID)
		case r.State != state:
			e.Errorf("%s: a job is %v, want %v", what, r.State, state)
		}
		seen[r.Posting.ID] = true
	}
	if len(seen) != len(want) {
		e.Errorf("%s: found %d jobs of %d", what, len(seen), len(want))
	}
}

func idsOf(list []*driver.Posting, state job.State) map[job.ID]job.State {
	m := map[job.ID]job.State{}
	for _, p := range list {
		m[p.ID] = state
	}
	return m
}

func scanOpen(e *env) {
	want := idsOf(e.posts(700), job.Unclaimed)
	n := 0
	for id := range want {
		if n++; n%7 == 0 {
			e.claim(id, "w")
			want[id] = job.Claimed
		}
	}
	list, next := e.scan(driver.ScanRequest{})
	e.exactly(list, want, "a scan of open jobs")
	if next != "" {
		e.Errorf("the last page has Next %q, want none", next)
	}
	for _, r := range list {
		if r.Posting.Details != nil || r.Version == 0 || (r.Holder != nil) != (r.State == job.Claimed) {
			e.Errorf("a scan without parts found %+v", r)
			break
		}
	}
}

func scanCursor(e *env) {
	want := idsOf(e.posts(130), job.Unclaimed)
	var all []driver.Record
	for after, turns := "", 0; ; turns++ {
		list, next := e.scan(driver.ScanRequest{After: after, Limit: 17})
		all = append(all, list...)
		if next == "" {
			break
		}
		if turns > len(want) {
			e.Fatalf("a scan of %d jobs, 17 at a time, does not end", len(want))
		}
		after = next
	}
	e.exactly(all, want, "a scan 17 at a time")
}

func scanSets(e *env) {
	list := e.posts(12)
	c := e.claim(list[0].ID, "w")
	e.must(byToken(driver.Trash, c))
	e.must(plain(driver.Trash, list[1].ID))
	e.must(byToken(driver.Remove, e.claim(list[2].ID, "w")))
	e.must(plain(driver.Remove, list[3].ID))
	e.must(plain(driver.Trash, list[4].ID))
	e.must(plain(driver.Purge, list[4].ID))
	e.claim(list[5].ID, "w")
	kept := plain(driver.Remove, list[6].ID)
	kept.Ending = &driver.Ending{Outcome: job.Failed, Keep: time.Hour, Data: []byte("why")}
	e.must(kept)
	want := map[driver.Set]map[job.ID]job.State{
		driver.OpenJobs:    idsOf(list[7:], job.Unclaimed),
		driver.TrashedJobs: idsOf(list[:2], job.Trashed),
		driver.EndedJobs:   idsOf([]*driver.Posting{list[2], list[3], list[6]}, job.Complete),
	}
	want[driver.OpenJobs][list[5].ID] = job.Claimed
	for set, ids := range want {
		found, _ := e.scan(driver.ScanRequest{Set: set, Parts: driver.FinalData})
		e.exactly(found, ids, "a scan of set "+itoa(uint64(set)))
		for _, r := range found {
			if r.Posting.ID == list[6].ID && (string(r.Final) != "why" || r.Outcome != job.Failed) {
				e.Errorf("a scan of ended jobs shows %v with final record %q", r.Outcome, r.Final)
			}
		}
	}
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || counts.Open != 6 || counts.Claimed != 1 || counts.Trashed != 2 || counts.Ended != 3 || counts.Bad != 0 {
		e.Errorf("Count: got %+v and %v, want 6 open, 1 of them claimed, 2 trashed, 3 ended", counts, err)
	}
}

// scanOrder checks that trashed and ended jobs come by time, both ways.
func scanOrder(e *env) {
	list := e.posts(40)
	for i, p := range list {
		kind := driver.Trash
		if i%2 == 0 {
			kind = driver.Remove
		}
		e.must(plain(kind, p.ID))
	}
	for _, set := range []driver.Set{driver.TrashedJobs, driver.EndedJobs} {
		oldest, _ := e.scan(driver.ScanRequest{Set: set})
		newest, _ := e.scan(driver.ScanRequest{Set: set, NewestFirst: true})
		if len(oldest) != 20 || len(newest) != 20 {
			e.Fatalf("set %d has 20 jobs, scans found %d and %d", set, len(oldest), len(newest))
		}
		for i := 1; i < 20; i++ {
			if oldest[i].EndedAt.Before(oldest[i-1].EndedAt) || newest[i].EndedAt.After(newest[i-1].EndedAt) {
				e.Errorf("set %d is not in the order of time at record %d", set, i)
				break
			}
		}
		var paged []driver.Record
		for after := ""; len(paged) < 40; {
			part, next := e.scan(driver.ScanRequest{Set: set, NewestFirst: true, Limit: 6, After: after})
			paged = append(paged, part...)
			if after = next; next == "" {
				break
			}
		}
		want := map[job.ID]job.State{}
		for _, r := range oldest {
			want[r.Posting.ID] = r.State
		}
		e.exactly(paged, want, "newest first, 6 at a time")
		first, _ := e.scan(driver.ScanRequest{Set: set, NewestFirst: true, Limit: 1})
		if len(first) != 1 || first[0].EndedAt.Before(oldest[19].EndedAt) {
			e.Errorf("newest first with limit 1 found %d records, not the newest", len(first))
		}
	}
}

func scanParts(e *env) {
	want := map[job.ID]*driver.Posting{}
	for _, p := range e.posts(20) {
		want[p.ID] = p
	}
	list, _ := e.scan(driver.ScanRequest{Parts: driver.Details})
	for _, r := range list {
		e.samePosting(&r.Posting, want[r.Posting.ID], true)
	}
}

func scanEmpty(e *env) {
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs, driver.EndedJobs} {
		if list, next := e.scan(driver.ScanRequest{Set: set}); len(list) != 0 || next != "" {
			e.Errorf("a scan of an empty board found %d jobs, and Next is %q", len(list), next)
		}
	}
}

func scanBreak(e *env) {
	e.posts(300)
	for range e.driver.Scan(e.Context(), e.name, driver.ScanRequest{}) { //nolint:errcheck // what it gives is not looked at
		break
	}
	e.post()
}

// scanUnderChange checks that jobs that stay are found while others come and go.
func scanUnderChange(e *env) {
	staying, leaving := e.posts(400), e.posts(100)
	seen := map[job.ID]bool{}
	page := 0
	for p, err := range e.driver.Scan(e.Context(), e.name, driver.ScanRequest{}) {
		if err != nil {
			e.Fatalf("Scan: %v", err)
		}
		for _, r := range p.Records {
			seen[r.Posting.ID] = true
		}
		for i := range 20 {
			if n := page*20 + i; n < len(leaving) {
				e.must(plain(driver.Remove, leaving[n].ID))
				e.must(plain(driver.Update, staying[n].ID))
			}
		}
		page++
	}
	missed := 0
	for _, p := range staying {
		if !seen[p.ID] {
			missed++
		}
	}
	if missed > 0 {
		e.Errorf("a scan missed %d of %d jobs that were on the board all the time", missed, len(staying))
	}
}

// scanPosition checks that what changes during a scan is on its pages or in the
// changes after its position, whichever page has it.
func scanPosition(e *env) {
	list := e.posts(600)
	moved := map[job.ID]driver.Position{}
	versions := map[job.ID]uint64{}
	var start driver.Position
	for req := (driver.ScanRequest{Limit: 400}); ; {
		for page, err := range e.driver.Scan(e.Context(), e.name, req) {
			if err != nil {
				e.Fatalf("Scan: %v", err)
			}
			for _, r := range page.Records {
				versions[r.Posting.ID] = r.Version
			}
			start, req.After = page.Position, page.Next
			p := e.post()
			moved[p.ID] = e.read(p.ID).Position
			first := list[len(moved)].ID
			moved[first] = e.must(plain(driver.Update, first)).Position
		}
		if req.After == "" {
			break
		}
	}
	f := e.follow(start)
	f.until(e, e.must(postOp(posting("last"))).Position)
	for id, position := range moved {
		scanned := versions[id] == e.readParts(id, 0).Version
		watched := len(f.seen(id)) > 0
		if !scanned && !watched {
			e.Errorf("a change at %d, made during a scan, is neither on its pages nor after its position %d", position, start)
		}
	}
}
