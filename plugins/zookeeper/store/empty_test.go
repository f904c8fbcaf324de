package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var theMove = [16]byte{7}

func (k *desk) tryStep(step driver.MoveStep) error {
	m := driver.Move{Step: step, ID: theMove, Shared: true}
	return k.driver.(driver.Mover).MoveBoard(k.Context(), k.name, m) //nolint:forcetypeassert // it is one
}

func (k *desk) step(step driver.MoveStep) {
	k.Helper()
	if err := k.tryStep(step); err != nil {
		k.Fatalf("step %d of a move: %v", step, err)
	}
}

// noStep wants a step refused with a kind, and something named.
func (k *desk) noStep(step driver.MoveStep, kind job.Kind, named fmt.Stringer, why string) {
	k.Helper()
	if err := k.tryStep(step); job.KindOf(err) != kind || !strings.Contains(err.Error(), named.String()) {
		k.Errorf("%s: step %d of a move: %v, want %v that names %v", why, step, err, kind, named)
	}
}

// posts has TaskFlow post a job.
func (p *pair) posts(name string) job.ID {
	p.Helper()
	id, err := job.ParseID(p.python.Post(name, nil).UUID)
	if err != nil {
		p.Fatal(err)
	}
	return id
}

func (p *pair) claims(id job.ID, who string) {
	p.Helper()
	if err := p.python.Claim(id.String(), who, 0); err != nil {
		p.Fatal(err)
	}
}

func (p *pair) ends(how string, id job.ID, who string) {
	p.Helper()
	if err := p.python.End(how, id.String(), who); err != nil {
		p.Fatal(err)
	}
}

// children is what lies in a folder.
func (p *pair) children(path string) []string {
	p.Helper()
	c := p.connect()
	defer c.Close()
	names, _, err := c.Children(path)
	if err != nil {
		p.Fatal(err)
	}
	return names
}

// TestEmptyTaskFlowsFolders has a board leave that TaskFlow shares: what either side posted, claimed
// or trashed is out of TaskFlow's folders then, what another board has in the trash beside it stays, and
// a host that watched the board is told of nothing.
func TestEmptyTaskFlowsFolders(t *testing.T) {
	t.Parallel()
	p := meet(t, "/p/a")
	sibling := sit(t, p.driver, "/p/b", nil)
	kept := sibling.post("of the sibling", `{}`, nil)
	sibling.must(driver.Op{Kind: driver.Trash, Job: kept})
	for range 12 {
		p.post("of boardd", `{}`, nil)
		p.posts("of TaskFlow")
	}
	held, aside, given, gone := p.post("held", `{}`, nil), p.posts("trashed"), p.posts("given back"), p.posts("consumed")
	p.claim(held, "w", time.Hour)
	ours := p.post("trashed by boardd", `{}`, nil)
	p.must(driver.Op{Kind: driver.Trash, Job: ours})
	for how, id := range map[string]job.ID{"trash": aside, "abandon": given, "consume": gone} {
		p.sees(id, job.Unclaimed, "TaskFlow has posted a job") // else nobody knows whose it is in the trash
		p.claims(id, "a conductor")
		p.ends(how, id, "a conductor")
	}
	p.post("waits", `{}`, &driver.Hold{Always: true})
	other := sit(t, openWith(t, settingsOf(p.z.Servers(), nil)), "/p/a", nil)
	other.watch()
	p.step(driver.Freeze)
	p.state(aside, job.Trashed, "TaskFlow trashed it before the board was frozen")
	counts, err := p.driver.Count(t.Context(), p.name)
	if err != nil || counts.Open != 27 || counts.Trashed != 2 || counts.Claimed != 1 {
		t.Errorf("a frozen board counts %+v, %v: want 27 open jobs, one of them held, and 2 in the trash", counts, err)
	}
	p.step(driver.Leave)
	if names := p.children("/p/a"); len(names) < 27 {
		t.Errorf("a board that was left has %d nodes: want that nothing is taken out yet", len(names))
	}
	p.step(driver.Empty)
	p.step(driver.Empty)
	if names := p.children("/p/a"); len(names) > 0 {
		t.Errorf("TaskFlow finds %d nodes on a board that was emptied: %v", len(names), names)
	}
	if names := p.children("/p/.trash"); len(names) != 1 {
		t.Errorf("in the trash beside the board is %v: want the sibling's job", names)
	}
	if list, err := p.python.List(false); err != nil || len(list) > 0 {
		t.Errorf("TaskFlow lists %v, %v on a board that was emptied", list, err)
	}
	sibling.state(kept, job.Trashed, "it is another board's")
	for _, id := range []job.ID{held, given} {
		for _, k := range []*desk{p.desk, other} {
			if c := k.last(id); c != nil && c.Record.State == job.Complete {
				t.Errorf("a host was told that job %v ended, which has moved: %+v", id, c)
			}
		}
	}
	late := p.posts("late")
	p.noStep(driver.Empty, job.AlreadyExists, late, "a posting that came when the board had gone")
	if err := p.driver.DropBoard(t.Context(), p.name); err != nil {
		t.Fatal(err)
	}
	if names := p.children("/p/a"); len(names) != 1 {
		t.Errorf("after the drop there is %v: want the posting that came late", names)
	}
}

// TestFreezeSharedBoard freezes a board of which TaskFlow holds a job: that is refused until it
// does no more.
func TestFreezeSharedBoard(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	held := p.post("held", `{}`, nil)
	p.claims(held, "a conductor")
	p.noStep(driver.Freeze, job.Precondition, held, "TaskFlow holds a job")
	p.claim(p.post("another", `{}`, nil), "w", time.Minute) // nothing is frozen
	p.ends("abandon", held, "a conductor")
	p.step(driver.Freeze)
}

// TestFreezeKnowsEverything has TaskFlow end jobs and post one just before the board is frozen.
func TestFreezeKnowsEverything(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	consumed, trashed, given := p.post("consumed", `{}`, nil), p.post("trashed", `{}`, nil), p.post("given back", `{}`, nil)
	for how, id := range map[string]job.ID{"trash": trashed, "abandon": given, "consume": consumed} {
		p.claims(id, "a conductor")
		p.ends(how, id, "a conductor")
	}
	posted := p.posts("posted")
	p.step(driver.Freeze)
	for id, want := range map[job.ID]job.State{consumed: job.Complete, trashed: job.Trashed, given: job.Unclaimed, posted: job.Unclaimed} {
		p.state(id, want, "the board is frozen")
	}
	p.step(driver.Leave)
	p.step(driver.Thaw)
	p.claim(posted, "w", time.Minute)
}

// TestLeaveNoticesTaskFlow has TaskFlow, which should have been stopped, change a frozen board: it is
// not left, and goes on with that when the move is given up.
func TestLeaveNoticesTaskFlow(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"posts", "claims", "consume", "trash", "abandon"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := meet(t, "/taskflow/jobs")
			id := p.post("job", `{}`, nil)
			p.step(driver.Freeze)
			switch name {
			case "posts":
				id = p.posts("late")
			default:
				p.claims(id, "a conductor")
				if name != "claims" {
					p.ends(name, id, "a conductor")
				}
			}
			if err := p.tryStep(driver.Leave); job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), "another program has changed") {
				t.Errorf("TaskFlow's %s on a frozen board, and it is left: %v, want %v", name, err, job.Precondition)
			}
			p.step(driver.Thaw)
			if name == "posts" || name == "abandon" {
				p.claim(id, "w", time.Minute)
			}
		})
	}
}

// TestEmptyLeavesWhatIsLate has TaskFlow change a board after it was left: what it holds is waited
// for, what it posted stays, and what it ended is said.
func TestEmptyLeavesWhatIsLate(t *testing.T) {
	t.Parallel()
	p := meet(t, "/taskflow/jobs")
	held, consumed := p.post("held", `{}`, nil), p.post("consumed", `{}`, nil)
	for range 30 { // more than are taken at once
		p.post("job", `{}`, nil)
	}
	p.step(driver.Freeze)
	p.step(driver.Leave)
	for _, id := range []job.ID{held, consumed} {
		p.claims(id, "a conductor")
	}
	p.ends("consume", consumed, "a conductor")
	p.noStep(driver.Empty, job.Unavailable, held, "TaskFlow has claimed a job")
	if names := p.children("/taskflow/jobs"); len(names) != 2 {
		t.Errorf("TaskFlow's folder has %v: want one job and its lock", names)
	}
	p.ends("abandon", held, "a conductor")
	p.noStep(driver.Empty, job.AlreadyExists, consumed, "TaskFlow has consumed a job")
	if names := p.children("/taskflow/jobs"); len(names) > 0 {
		t.Errorf("TaskFlow's folder has %v: want nothing", names)
	}
	late := p.posts("late")
	next := sit(t, openWith(t, settingsOf(p.z.Servers(), nil)), "/taskflow/jobs", nil) // a host that knows of nothing
	next.noStep(driver.Empty, job.AlreadyExists, late, "TaskFlow has posted a job")
	if names := p.children("/taskflow/jobs"); len(names) != 1 {
		t.Errorf("TaskFlow's folder has %v: want the posting that came late", names)
	}
}
