package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/testserver"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var theMove = [16]byte{7}

func (b *bench) tryStep(step driver.MoveStep) error {
	m := driver.Move{Step: step, ID: theMove, Shared: true}
	return b.d.(driver.Mover).MoveBoard(b.Context(), b.board, m) //nolint:forcetypeassert // it is one
}

func (b *bench) step(step driver.MoveStep) {
	b.Helper()
	if err := b.tryStep(step); err != nil {
		b.Fatalf("step %d of a move: %v", step, err)
	}
}

// noStep wants a step refused with a kind, and the job named.
func (b *bench) noStep(step driver.MoveStep, kind job.Kind, id job.ID, why string) {
	b.Helper()
	if err := b.tryStep(step); job.KindOf(err) != kind || !strings.Contains(err.Error(), id.String()) {
		b.Errorf("%s: step %d of a move: %v, want %v that names job %v", why, step, err, kind, id)
	}
}

// left is TaskFlow's own keys of the namespace.
func (p *python) left() (names []string) {
	p.t.Helper()
	keys, err := p.client.Keys(p.t.Context(), p.namespace+"*").Result()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, key := range keys {
		if name := strings.TrimPrefix(key, p.namespace); !strings.HasPrefix(name, "boardd:") && name != "sequence" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func sharedBench(t *testing.T) (*bench, *python) {
	t.Helper()
	server := testserver.StartRedis(t, testserver.RedisOptions{})
	return newBench(t, server, nil), newPython(t, server, "octavia_jobboard")
}

// TestEmptyTaskFlowsKeys has a board leave that TaskFlow shares: what either side posted, claimed
// or trashed is out of TaskFlow's keys then, and nobody finds anything there.
func TestEmptyTaskFlowsKeys(t *testing.T) {
	t.Parallel()
	b, p := sharedBench(t)
	for range 120 { // more than are taken at once
		b.post("of boardd")
		p.post("of Python")
	}
	held, trashed, given := b.post("held"), p.post("trashed"), p.post("given back")
	b.claim(held, "w")
	p.trash(trashed)
	p.claim(given, "py", 0)
	p.abandon(given)
	b.must(driver.Op{Kind: driver.Update, Job: b.post("waits"), Hold: &driver.Hold{Always: true}})
	b.step(driver.Freeze)
	found := 0
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs} {
		for page, err := range b.d.Scan(t.Context(), b.board, driver.ScanRequest{Set: set}) {
			if err != nil {
				t.Fatal(err)
			}
			found += len(page.Records)
		}
	}
	if counts, err := b.d.Count(t.Context(), b.board); err != nil || found != 244 || counts.Open != 243 || counts.Trashed != 1 {
		t.Errorf("a frozen board has %d jobs, and counts %+v, %v: want all that was posted on either side", found, counts, err)
	}
	b.step(driver.Leave)
	if n := len(p.left()); n < 4 {
		t.Errorf("a board that was left has %d of TaskFlow's keys: want that nothing is taken out yet", n)
	}
	b.step(driver.Empty)
	if names := p.left(); len(names) > 0 {
		t.Errorf("TaskFlow finds %d keys on a board that was emptied: %v", len(names), names[:min(5, len(names))])
	}
	late := p.post("late")
	b.noStep(driver.Empty, job.AlreadyExists, late, "a posting that came when the board had gone")
	if names := p.left(); !slices.Equal(names, []string{"listings"}) {
		t.Errorf("TaskFlow's keys are %v: want the posting that came late alone", names)
	}
	if err := b.d.DropBoard(t.Context(), b.board); err != nil {
		t.Fatal(err)
	}
	keys, err := p.client.Keys(t.Context(), p.namespace+"*").Result()
	slices.Sort(keys)
	if want := []string{p.namespace + "listings", p.namespace + "sequence"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("after the drop there are the keys %v, %v: want %v", keys, err, want)
	}
}

// TestFreezeKnowsEverything freezes a board on which TaskFlow has just done this and that: when
// Freeze returns all of it is told, and where TaskFlow holds a job it is refused.
func TestFreezeKnowsEverything(t *testing.T) {
	t.Parallel()
	b, p := sharedBench(t)
	consumed, trashed, held := b.post("consumed"), b.post("trashed"), b.post("held")
	p.consume(consumed)
	p.trash(trashed)
	p.claim(held, "a conductor", 0)
	posted := p.post("posted")
	b.noStep(driver.Freeze, job.Precondition, held, "TaskFlow holds a job")
	b.noStep(driver.Freeze, job.Precondition, held, "TaskFlow holds a job still")
	p.abandon(held)
	b.step(driver.Freeze)
	for id, want := range map[job.ID]job.State{consumed: job.Complete, trashed: job.Trashed, held: job.Unclaimed, posted: job.Unclaimed} {
		if r := b.read(id); r.State != want {
			t.Errorf("on the frozen board job %v is %v, want %v", id, r.State, want)
		}
	}
	counts, err := b.d.Count(t.Context(), b.board)
	if err != nil || counts.Open != 2 || counts.Trashed != 1 || counts.Claimed != 0 {
		t.Errorf("a frozen board counts %+v, %v: want 2 open jobs and one in the trash", counts, err)
	}
	b.step(driver.Leave)
	b.step(driver.Thaw)
	b.claim(posted, "w")
}

// TestLeaveNoticesPython has TaskFlow, which should have been stopped, change a frozen board: it
// is not left, and goes on with that when the move is given up.
func TestLeaveNoticesPython(t *testing.T) {
	t.Parallel()
	for name, does := range map[string]func(p *python, id job.ID) job.ID{
		"posts":          func(p *python, _ job.ID) job.ID { return p.post("late") },
		"claims":         func(p *python, id job.ID) job.ID { p.claim(id, "py", 0); return id },
		"consumes":       func(p *python, id job.ID) job.ID { p.consume(id); return id },
		"trashes":        func(p *python, id job.ID) job.ID { p.trash(id); return id },
		"takes our name": func(p *python, id job.ID) job.ID { p.claim(id, "w", time.Minute); return id },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, p := sharedBench(t)
			id := b.claim(b.post("job"), "w").Job
			b.step(driver.Freeze)
			changed := does(p, id)
			b.noStep(driver.Leave, job.Precondition, changed, "TaskFlow "+name)
			b.noStep(driver.Leave, job.Precondition, changed, "TaskFlow "+name+", once more")
			b.step(driver.Thaw)
			if name == "posts" {
				b.claim(changed, "w")
			}
		})
	}
}

// TestEmptyLeavesWhatIsLate has TaskFlow change a board after it was left: of that nothing is
// taken out of its keys, and what it holds is waited for.
func TestEmptyLeavesWhatIsLate(t *testing.T) {
	t.Parallel()
	b, p := sharedBench(t)
	held := b.post("claimed")
	b.claim(b.post("ours"), "w")
	for range 120 {
		b.post("job")
	}
	b.step(driver.Freeze)
	b.step(driver.Leave)
	p.claim(held, "py", 0)
	b.noStep(driver.Empty, job.Unavailable, held, "TaskFlow has claimed a job")
	if names := p.left(); len(names) != 3 {
		t.Errorf("TaskFlow's keys are %v: want one job, its owner and its last_modified", names)
	}
	b.noStep(driver.Empty, job.Unavailable, held, "TaskFlow holds the job still")
	p.abandon(held)
	b.step(driver.Empty)
	if names := p.left(); len(names) > 0 {
		t.Errorf("TaskFlow's keys are %v: want none", names)
	}
}

// TestEmptyAfterItsEnd has TaskFlow end jobs of a board that was left, and claim one by the name
// of its holder.
func TestEmptyAfterItsEnd(t *testing.T) {
	t.Parallel()
	b, p := sharedBench(t)
	ours, consumed := b.claim(b.post("ours"), "w").Job, b.post("consumed")
	b.step(driver.Freeze)
	b.step(driver.Leave)
	p.claim(ours, "w", time.Minute)
	p.consume(consumed)
	b.step(driver.Leave) // looks at everything, and tells nobody of a board that has gone that its jobs ended
	if counts, err := b.d.Count(t.Context(), b.board); err != nil || counts.Claimed != 1 || counts.Ended != 0 {
		t.Errorf("a board that was left counts %+v, %v: want none that ended", counts, err)
	}
	b.noStep(driver.Empty, job.Unavailable, ours, "TaskFlow has claimed a job by the name of its holder")
	p.abandon(ours)
	b.noStep(driver.Empty, job.AlreadyExists, consumed, "TaskFlow has consumed a job")
	late := p.post("late")
	for page, err := range b.d.Scan(t.Context(), b.board, driver.ScanRequest{}) {
		if err != nil || len(page.Records) > 1 {
			t.Errorf("a scan of what was emptied: %d jobs, %v", len(page.Records), err)
		}
	}
	if names := p.left(); !slices.Equal(names, []string{"listings"}) {
		t.Errorf("TaskFlow's keys are %v: want its posting %v alone", names, late)
	}
}

// TestUnreadableStays has a board with a posting that nobody can read: it does not come along, so
// that it stays.
func TestUnreadableStays(t *testing.T) {
	t.Parallel()
	b, p := sharedBench(t)
	b.post("job")
	spoiled := job.ID{9}
	p.ok(p.client.HSet(t.Context(), p.namespace+"listings", spoiled.String(), "no msgpack", "not a uuid", "x"))
	b.step(driver.Freeze)
	b.step(driver.Leave)
	b.step(driver.Empty)
	names, err := p.client.HKeys(t.Context(), p.namespace+"listings").Result()
	slices.Sort(names)
	if want := []string{spoiled.String(), "not a uuid"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("TaskFlow's listings have %v, %v: want what could not be read, %v", names, err, want)
	}
}
