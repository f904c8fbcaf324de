package drivertest

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// left checks that nobody is told how jobs and groups stood.
func (e *env) left(ids []job.ID, why string) {
	e.Helper()
	_, err := e.driver.Read(e.Context(), e.name, ids, 0)
	e.wantKind(err, job.Unavailable, "Read: "+why)
	_, err = e.driver.Read(e.Context(), e.name, []job.ID{newID()}, driver.Details)
	e.wantKind(err, job.Unavailable, "Read of a job that there is not: "+why)
	if e.caps().Groups {
		e.refused(tally("g"), job.Unavailable, why)
	}
	e.refused(postOp(posting("not here")), job.Unavailable, why)
}

// moveLeave checks that nobody is told how jobs stood on a board that has gone, whatever steps
// of the move come late, and that it goes on where the move is given up.
func moveLeave(e *env) {
	open, held := e.post(), e.post()
	c := e.claim(held.ID, "w")
	version := e.put(e.shelf(), "a", "b", 0)
	id, ids := random16(), []job.ID{open.ID, held.ID}
	e.noStep(driver.Leave, id, job.Precondition, "Leave of a board that is not frozen")
	e.step(driver.Freeze, id)
	e.noStep(driver.Leave, random16(), job.Precondition, "Leave by another move")
	e.state(open.ID, job.Unclaimed, "the board is frozen")
	e.step(driver.Leave, id)
	e.left(ids, "the board has gone")
	e.step(driver.Leave, id)
	e.step(driver.Freeze, id)
	e.left(ids, "the board has gone, and a Freeze came late")
	e.noStep(driver.Thaw, random16(), job.Precondition, "Thaw by another move")
	e.noStep(driver.Admit, id, job.Precondition, "Admit of a board that has gone")
	e.noStep(driver.Receive, id, job.Precondition, "Receive of a board that has gone")
	e.openAgain()
	e.left(ids, "the board has gone, and was opened again")
	if list, _ := e.scan(driver.ScanRequest{}); len(list) != 2 {
		e.Errorf("a scan of a board that has gone found %d jobs, want 2", len(list))
	}
	counts, err := e.driver.Count(e.Context(), e.name)
	if err != nil || counts.Open != 2 {
		e.Errorf("a board that has gone counts %+v, %v: want 2 open jobs", counts, err)
	}
	_, err = e.driver.Documents().Put(e.Context(), e.shelf(), driver.Document{Name: "a", Data: []byte("c")}, version)
	e.wantKind(err, job.Unavailable, "Put: the board has gone")
	e.step(driver.Thaw, id)
	e.noStep(driver.Leave, id, job.Precondition, "Leave that comes after a Thaw")
	e.must(byToken(driver.Remove, c))
	e.state(open.ID, job.Unclaimed, "the move was given up")
	e.put(e.shelf(), "a", "c", version)
}
