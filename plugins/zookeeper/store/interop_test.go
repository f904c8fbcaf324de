package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// A pair is boardd's driver and real TaskFlow on one board.
type pair struct {
	*desk
	python *testserver.PythonBoard
	z      *testserver.ZooKeeperEnsemble
}

func meet(t *testing.T, path string) *pair {
	t.Helper()
	z := testserver.ZooKeeper(t, testserver.ZooKeeperOptions{Fast: true})
	k := sit(t, openWith(t, settingsOf(z.Servers(), nil)), path, nil)
	k.watch()
	f := testserver.StartTaskFlow(t)
	python := f.Connect("python", testserver.Args{"board": "zookeeper", "hosts": z.Servers()[0], "path": path}, 0)
	return &pair{k, python, z}
}

// class checks which exception TaskFlow raises.
func (p *pair) class(err error, want, why string) {
	p.Helper()
	var e *testserver.TaskFlowError
	if !errors.As(err, &e) || e.Class != want {
		p.Errorf("%s: TaskFlow says %v, want %s", why, err, want)
	}
}

// TestInterop does every pair of who posts, who claims and who finishes, and
// how.
func TestInterop(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	ours, theirs := []string{"boardd", "python"}, []string{"consume", "abandon", "trash"}
	for _, poster := range ours {
		for _, claimer := range ours {
			for _, finisher := range ours {
				for _, how := range theirs {
					p.life(poster, claimer, finisher, how)
				}
			}
		}
	}
}

// life takes a job through its life. Both sides use one owner's name, and on
// boardd's side a finisher that did not claim does it by that name.
func (p *pair) life(poster, claimer, finisher, how string) {
	p.Helper()
	what := strings.Join([]string{poster, claimer, finisher, how}, ", ")
	var id job.ID
	if poster == "boardd" {
		id = p.post(what, `{"a": 1}`, nil)
	} else {
		id = parse(p.T, p.python.Post(what, testserver.Args{"details": map[string]any{"a": 1}}).UUID)
		p.sees(id, job.Unclaimed, "TaskFlow posted: "+what)
	}
	var claimed driver.Claimed
	if claimer == "boardd" {
		claimed = p.claim(id, "worker", time.Minute)
	} else {
		if err := p.python.Claim(id.String(), "worker", 0); err != nil {
			p.Fatalf("%s: %v", what, err)
		}
		p.sees(id, job.Claimed, "TaskFlow claimed: "+what)
	}
	r := p.state(id, job.Claimed, what)
	if r.Holder == nil || r.Holder.Owner != "worker" || r.Holder.Foreign != (claimer == "python") || string(r.Posting.Details) != `{"a": 1}` {
		p.Errorf("%s: claimed, the job is %+v", what, r)
	}
	if state, err := p.python.State(id.String()); err != nil || state != "CLAIMED" {
		p.Errorf("%s: to TaskFlow the claimed job is %s (%v)", what, state, err)
	}
	if owner, err := p.python.Owner(id.String()); err != nil || owner != "worker" {
		p.Errorf("%s: to TaskFlow the owner is %q (%v)", what, owner, err)
	}
	var again error
	p.until("TaskFlow has listed the job: "+what, func() bool { // its list may lag behind what it was just asked of
		again = p.python.Claim(id.String(), "worker", 0)
		var e *testserver.TaskFlowError
		return !errors.As(again, &e) || e.Class != "NotFound"
	})
	p.class(again, "UnclaimableJob", what+": claimed once more")
	p.finish(id, claimed, claimer, finisher, how, what)
	p.after(id, claimed, finisher, how, what)
}

func (p *pair) finish(id job.ID, claimed driver.Claimed, claimer, finisher, how, what string) {
	p.Helper()
	if finisher == "python" {
		if err := p.python.End(how, id.String(), "worker"); err != nil {
			p.Errorf("%s: %v", what, err)
		}
		return
	}
	kind := map[string]driver.OpKind{"consume": driver.Remove, "abandon": driver.Release, "trash": driver.Trash}[how]
	op := driver.Op{Kind: kind, Job: id, Precondition: driver.HeldByOwner, Owner: "worker"}
	if claimer == "boardd" {
		op.Precondition, op.Token = driver.HeldByToken, claimed.Token
	}
	p.must(op)
}

// after checks that both sides see the same of a finished job.
func (p *pair) after(id job.ID, claimed driver.Claimed, finisher, how, what string) {
	p.Helper()
	want := map[string]job.State{"consume": job.Complete, "abandon": job.Unclaimed, "trash": job.Trashed}[how]
	p.until(what+": the job is "+want.String(), func() bool {
		state := p.read(id).State
		// Of a job that only TaskFlow has touched nothing is left once it is consumed.
		return state == want || state == job.Unknown && finisher == "python" && want == job.Complete
	})
	if !claimed.Token.IsZero() {
		extend := byToken(driver.Extend, claimed, job.Extended)
		if r := p.do(extend); r.Kind != job.LeaseLost && r.Kind != job.NotFound {
			p.Errorf("%s: the token still does something: %v", what, r.Kind)
		}
	}
	state, err := p.python.State(id.String())
	if wantState := map[string]string{"consume": "COMPLETE", "abandon": "UNCLAIMED", "trash": "COMPLETE"}[how]; err != nil || state != wantState {
		p.Errorf("%s: to TaskFlow the job is %s (%v), want %s", what, state, err, wantState)
	}
	if how == "trash" && finisher == "python" {
		p.sees(id, job.Trashed, what)
		p.must(driver.Op{Kind: driver.Restore, Job: id})
		if r := p.state(id, job.Unclaimed, what+": restored"); string(r.Posting.Details) != `{"a": 1}` || r.Posting.Name != what {
			p.Errorf("%s: restored it is %+v", what, r.Posting)
		}
		how = "abandon"
	}
	if how == "abandon" {
		p.sees(id, job.Unclaimed, what)
		c := p.claim(id, "the next one", time.Minute)
		p.must(byToken(driver.Remove, c, job.ConsumedEvent))
	} else {
		p.until(what+": it is off the board", func() bool {
			c := p.last(id)
			return c != nil && c.Record != nil && c.Record.State != job.Unclaimed && c.Record.State != job.Claimed
		})
	}
}

// TestInteropSameOwner lets TaskFlow end a claim of ours under our own name and
// make one of its own: the token is worth nothing from then on, whatever the
// name.
func TestInteropSameOwner(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	id := p.post("same owner", `{}`, nil)
	c := p.claim(id, "worker", time.Minute)
	for _, step := range []func() error{
		func() error { return p.python.End("abandon", id.String(), "worker") },
		func() error { return p.python.Claim(id.String(), "worker", 0) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	// At once: nothing has told this host yet.
	for _, kind := range []driver.OpKind{driver.Extend, driver.Update, driver.Release, driver.Remove, driver.Trash} {
		p.kind(byToken(kind, c, job.OperationEvent), job.LeaseLost, "TaskFlow has the job under the same name")
	}
	r := p.state(id, job.Claimed, "by TaskFlow")
	if r.Holder == nil || !r.Holder.Foreign || !r.Holder.Token.IsZero() {
		t.Errorf("the holder is %+v, want another program", r.Holder)
	}
	// TaskFlow's session ends, and its claim with it.
	if err := p.python.On("close", nil, nil); err != nil {
		t.Fatal(err)
	}
	p.sees(id, job.Unclaimed, "TaskFlow's session ended")
	p.claim(id, "worker", time.Minute)
}

// TestInteropHold checks that TaskFlow takes no job that may not run yet, and
// has it as soon as it may.
func TestInteropHold(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	always := p.post("held", `{}`, &driver.Hold{Always: true})
	brief := p.post("held for a while", `{}`, &driver.Hold{For: 2 * time.Second})
	free := p.post("free", `{}`, nil)
	for _, id := range []job.ID{always, brief} {
		p.class(p.python.Claim(id.String(), "conductor", 0), "UnclaimableJob", "it is held")
		r := p.state(id, job.Unclaimed, "held")
		if r.Holder != nil {
			t.Errorf("a held job has the holder %+v", r.Holder)
		}
	}
	list, err := p.python.List(true)
	if err != nil || len(list) != 1 || list[0].UUID != free.String() {
		t.Errorf("TaskFlow lists %+v as unclaimed (%v), want the one that is free", list, err)
	}
	p.until("TaskFlow can claim a job whose hold is over", func() bool { return p.python.Claim(brief.String(), "conductor", 0) == nil })
	p.must(driver.Op{Kind: driver.Update, Job: always, Hold: &driver.Hold{}})
	if err := p.python.Claim(always.String(), "conductor", 0); err != nil {
		t.Errorf("TaskFlow claims a job whose hold was taken away: %v", err)
	}
	// One that is given back for later.
	c := p.claim(free, "worker", time.Minute)
	release := byToken(driver.Release, c, job.Abandoned)
	release.Hold = &driver.Hold{For: time.Hour}
	p.must(release)
	p.class(p.python.Claim(free.String(), "conductor", 0), "UnclaimableJob", "it was given back for later")
}

// TestInteropValues checks that what Python posts comes through, and that what
// cannot be read hides nothing else.
func TestInteropValues(t *testing.T) {
	t.Parallel()
	p := meet(t, "/q/b") // where TaskFlow's rule finds the name twice
	odd := p.python.Post("odd", testserver.Args{"priority": "VERY_HIGH", "python": `{"nan": float("nan"), "inf": float("-inf"), "big": 2**70, "é": "ü"}`})
	id := parse(t, odd.UUID)
	p.sees(id, job.Unclaimed, "TaskFlow posted")
	r := p.state(id, job.Unclaimed, "posted by TaskFlow")
	const want = `{"nan": NaN, "inf": -Infinity, "big": 1180591620717411303424, "\u00e9": "\u00fc"}`
	if string(r.Posting.Details) != want || r.Posting.Priority != job.VeryHigh || r.Posting.Name != "odd" {
		t.Errorf("TaskFlow's posting came as %+v with details %s, want %s", r.Posting, r.Posting.Details, want)
	}
	p.raw("/q/b/job9999999999x", `{}`)
	p.raw("/q/b/job0000000777", `{"uuid": 1}`)
	p.raw("/q/b/job0000000778.lock", `{"owner": "nobody's"}`)
	p.until("bad postings are told of", func() bool {
		bad := 0
		for page, err := range p.driver.Scan(t.Context(), p.name, driver.ScanRequest{}) {
			if err != nil {
				t.Fatal(err)
			}
			bad += len(page.Bad)
		}
		return bad == 2
	})
	c := p.claim(id, "worker", time.Minute)
	p.must(byToken(driver.Trash, c, job.TrashedEvent))
	var paths struct{ Trash string }
	if err := p.python.On("paths", nil, &paths); err != nil {
		t.Fatal(err)
	}
	if data := p.data(paths.Trash + odd.Key[strings.LastIndexByte(odd.Key, '/'):]); !strings.Contains(data, want) {
		t.Errorf("in TaskFlow's trash lies %q", data)
	}
	p.must(driver.Op{Kind: driver.Restore, Job: id})
	if r := p.state(id, job.Unclaimed, "restored"); string(r.Posting.Details) != want {
		t.Errorf("restored, the details are %s", r.Posting.Details)
	}
	p.remove("/q/b/job9999999999x") // TaskFlow lists nothing at all while there is one
	p.remove("/q/b/job0000000777")
	p.until("TaskFlow lists the restored job", func() bool {
		list, err := p.python.List(true)
		return err == nil && len(list) == 1 && list[0].UUID == odd.UUID
	})
}

// TestInteropTrash puts two boards beside each other, which share a trash and
// both count from 0.
func TestInteropTrash(t *testing.T) {
	t.Parallel()
	p := meet(t, "/p/a")
	sibling := sit(t, p.driver, "/p/b", nil)
	first, second := p.post("first", `{"of": "a"}`, nil), sibling.post("second", `{"of": "b"}`, nil)
	p.must(driver.Op{Kind: driver.Trash, Job: first})
	sibling.must(driver.Op{Kind: driver.Trash, Job: second})
	for k, id := range map[*desk]job.ID{p.desk: first, sibling: second} {
		k.state(id, job.Trashed, "both trashed")
		k.must(driver.Op{Kind: driver.Restore, Job: id})
	}
	if got := string(sibling.state(second, job.Unclaimed, "restored").Posting.Details); got != `{"of": "b"}` {
		t.Errorf("the second one came back as %s", got)
	}
}

// TestInteropConductor lets a conductor and a worker of ours drain one board.
func TestInteropConductor(t *testing.T) {
	t.Parallel()
	p := meet(t, "/octavia_jobboard")
	const jobs = 20
	ids := make([]job.ID, jobs)
	for i := range ids {
		ids[i] = parse(t, p.python.Post(text("work %d", i), testserver.Args{"book": true}).UUID)
	}
	ended := p.python.Go("conductor", testserver.Args{"board": "python", "name": "conductor"})
	consumed := 0
	for _, id := range ids {
		p.until("the job is known", func() bool { return p.last(id) != nil || p.read(id).State == job.Unknown })
		r := p.must(claimOp(id, "ours", time.Minute))
		if len(r.Claims) == 1 {
			p.must(byToken(driver.Remove, r.Claims[0], job.ConsumedEvent))
			consumed++
		}
	}
	p.until("the board is empty", func() bool {
		counts, err := p.driver.Count(t.Context(), p.name)
		return err == nil && counts.Open == 0
	})
	if err := p.python.Do("stop", testserver.Args{"name": "conductor"}, nil); err != nil {
		t.Error(err)
	}
	if err := ended(nil); err != nil {
		t.Error(err)
	}
	var runs []string
	if err := p.python.Do("runs", nil, &runs); err != nil {
		t.Error(err)
	}
	if consumed+len(runs) != jobs {
		t.Errorf("%d jobs were done by us and %d by the conductor: want %d altogether, each once", consumed, len(runs), jobs)
	}
}

// TestInteropEntities registers on each side and looks from the other, and
// checks that TaskFlow is notified of our jobs.
func TestInteropEntities(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	space := driver.Space{Board: p.name, Name: driver.EntitySpace}
	docs := p.driver.Documents()
	if err := p.python.On("register", testserver.Args{"name": "py@host:1", "metadata": map[string]any{"pid": 1}}, nil); err != nil {
		t.Fatal(err)
	}
	doc, err := docs.Get(t.Context(), space, "conductor/py@host:1")
	if err != nil || !strings.Contains(string(doc.Data), `"metadata": {"pid": 1}`) {
		t.Errorf("TaskFlow's entity is %q (%v)", doc.Data, err)
	}
	if _, err := docs.Put(t.Context(), space, driver.Document{Name: "conductor/go@host:2", Data: []byte(`{"kind": "conductor"}`)}, 0); err != nil {
		t.Fatal(err)
	}
	if got := p.data("/taskflow/.entities/conductor/go@host:2"); got != `{"kind": "conductor"}` {
		t.Errorf("where TaskFlow looks for entities lies %q", got)
	}
	list, err := docs.List(t.Context(), space, "", 0)
	if err != nil || len(list) != 2 {
		t.Errorf("there are %d entities (%v), want 2", len(list), err)
	}
	id := p.post("notified", `{}`, nil)
	c := p.claim(id, "worker", time.Minute)
	if _, err := p.python.State(id.String()); err != nil { // it knows the job
		t.Error(err)
	}
	p.must(byToken(driver.Remove, c, job.ConsumedEvent))
	p.until("TaskFlow is notified of a job of ours that came and went", func() bool {
		var events [][2]string
		if err := p.python.Do("events", nil, &events); err != nil {
			t.Fatal(err)
		}
		seen := map[[2]string]bool{}
		for _, e := range events {
			seen[e] = true
		}
		return seen[[2]string{"POSTED", id.String()}] && seen[[2]string{"REMOVAL", id.String()}]
	})
}

// TestEntityTerms registers entities for a time: one stays over a restart of the driver,
// and one goes though the driver lives, each of them where TaskFlow has its own, and for
// the boards beside as well.
func TestEntityTerms(t *testing.T) {
	t.Parallel()
	p := meet(t, "/p/jobs")
	space := driver.Space{Board: p.name, Name: driver.EntitySpace}
	long, short := "conductor/long@host:1", "conductor/short@host:2"
	put := func(name string, ttl time.Duration) {
		t.Helper()
		doc := driver.Document{Name: name, Data: []byte(`{"kind": "conductor"}`), Expires: time.Now().Add(ttl)}
		var version uint64
		if present, err := p.driver.Documents().Get(t.Context(), space, name); err == nil {
			version = present.Version
		}
		if _, err := p.driver.Documents().Put(t.Context(), space, doc, version); err != nil {
			t.Fatal(err)
		}
	}
	names := func(board string) string {
		t.Helper()
		list, err := p.driver.Documents().List(t.Context(), driver.Space{Board: board, Name: driver.EntitySpace}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, doc := range list {
			all = append(all, doc.Name)
		}
		return strings.Join(all, " ")
	}
	if err := p.python.On("register", testserver.Args{"name": "long@host:1", "metadata": map[string]any{}}, nil); err != nil {
		t.Fatal(err)
	}
	put(long, 10*time.Minute) // in the place of one that would end with TaskFlow's session
	put(short, time.Hour)
	put(short, 10*time.Minute)
	if err := p.python.On("close", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := p.driver.Close(); err != nil {
		t.Fatal(err)
	}
	p.desk = sit(t, openWith(t, settingsOf(p.z.Servers(), nil)), "/p/jobs", nil) // the one before goes on looking
	beside := sit(t, p.driver, "/p/beside", nil)
	for _, board := range []string{p.name, beside.name} {
		if got := names(board); got != long+" "+short {
			t.Errorf("%s: after a restart there are %q, want both", board, got)
		}
	}
	doc, err := p.driver.Documents().Get(t.Context(), space, long)
	if left := time.Until(doc.Expires); err != nil || left < 8*time.Minute || left > 10*time.Minute {
		t.Errorf("it stays for %v (%v), want what is left of ten minutes", left, err)
	}
	put(short, time.Second)
	c := p.connect()
	defer c.Close()
	gone := func() bool {
		there, _, err := c.Exists("/p/.entities/conductor/short@host:2")
		return err == nil && !there
	}
	p.until("an entity whose time is over is gone from where TaskFlow has them", gone)
	if got := names(p.name); got != long {
		t.Errorf("there are %q, want %s alone", got, long)
	}
	if err := p.driver.Documents().Delete(t.Context(), space, long, doc.Version); err != nil {
		t.Error(err)
	}
	if left, _, err := c.Children("/p/.entities/.boardd/conductor"); err != nil || len(left) != 0 {
		t.Errorf("terms without an entity are left: %v, %v", left, err)
	}
}

// TestTaskFlowExtendsNothing: on ZooKeeper a claim of TaskFlow's has no time that it
// could extend or shorten, so that there is nothing to follow: it lasts as long as the
// session.
func TestTaskFlowExtendsNothing(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	id := parse(t, p.python.Post("a job", nil).UUID)
	p.sees(id, job.Unclaimed, "TaskFlow posted")
	p.class(p.python.Claim(id.String(), "conductor", 30), "TypeError", "claimed for a time")
	if err := p.python.Claim(id.String(), "conductor", 0); err != nil {
		t.Fatal(err)
	}
	p.sees(id, job.Claimed, "TaskFlow claimed")
	for _, seconds := range []float64{60, 1} {
		p.class(p.python.On("extend", testserver.Args{"uuid": id.String(), "expiry": seconds}, nil), "AttributeError", "extended")
	}
	if h := p.read(id).Holder; h == nil || !h.Foreign || !h.NoExpiry {
		t.Errorf("TaskFlow's claim is held by %+v, want another program, without an expiry", h)
	}
}

// TestHoldAfterAbandon: a claim that TaskFlow gave back stays ended when a hold puts
// boardd's own lock on the job.
func TestHoldAfterAbandon(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	id := p.post("a job", `{}`, nil)
	c := p.claim(id, "worker", time.Hour)
	if err := p.python.End("abandon", id.String(), "worker"); err != nil {
		t.Fatal(err)
	}
	op := driver.Op{Kind: driver.Update, Job: id, Hold: &driver.Hold{Always: true}, Request: random16(), Event: job.OperationEvent}
	if r := p.must(op); r.Repeated {
		t.Fatalf("%+v", r)
	}
	if r := p.state(id, job.Unclaimed, "given back by TaskFlow, and held"); !r.Held || r.Holder != nil {
		t.Errorf("held: %v, by %+v; want it held, and by nobody", r.Held, r.Holder)
	}
	p.kind(byToken(driver.Remove, c, job.ConsumedEvent), job.LeaseLost, "the token of the claim that ended")
}
