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

// moveEmpty checks that a board is emptied only once it was left, for good, and that nobody is
// told of its jobs or changes any, whatever steps of the move come late.
func moveEmpty(e *env) {
	if !e.caps().Empties {
		e.Logf("the driver does not say that boards are emptied")
		return
	}
	open, aside := e.post(), e.post()
	held := e.post()
	c := e.claim(held.ID, "w")
	e.must(plain(driver.Trash, aside.ID))
	version := e.put(e.shelf(), "a", "b", 0)
	id := random16()
	e.noStep(driver.Empty, id, job.Precondition, "Empty of a board that no move has taken")
	e.shared(driver.Freeze, id)
	e.noStep(driver.Empty, id, job.Precondition, "Empty of a board that is frozen")
	e.shared(driver.Leave, id)
	e.noStep(driver.Empty, random16(), job.Precondition, "Empty by another move")
	for range 2 {
		e.shared(driver.Empty, id)
		e.left([]job.ID{open.ID, held.ID, aside.ID}, "the board was emptied")
		e.refused(byToken(driver.Remove, c), job.Unavailable, "the board was emptied")
		_, err := e.driver.Documents().Put(e.Context(), e.shelf(), driver.Document{Name: "a", Data: []byte("c")}, version)
		e.wantKind(err, job.Unavailable, "Put: the board was emptied")
		e.shared(driver.Freeze, id)
		e.shared(driver.Leave, id)
		e.noStep(driver.Thaw, id, job.Precondition, "Thaw of a board that was emptied")
		e.noStep(driver.Admit, id, job.Precondition, "Admit of a board that was emptied")
		e.noStep(driver.Receive, id, job.Precondition, "Receive of a board that was emptied")
		e.openAgain()
	}
	if err := e.driver.DropBoard(e.Context(), e.name); err != nil {
		e.Fatalf("DropBoard of a board that was emptied: %v", err)
	}
	e.openAgain()
	for _, set := range []driver.Set{driver.OpenJobs, driver.TrashedJobs} {
		if list, _ := e.scan(driver.ScanRequest{Set: set}); len(list) != 0 {
			e.Errorf("a board that was emptied and dropped has %d jobs in set %d", len(list), set)
		}
	}
	e.claim(e.post().ID, "w")
	e.put(e.shelf(), "a", "b", 0)
}

// shared takes a step of a board for whose jobs other programs may look.
func (e *env) shared(step driver.MoveStep, id [16]byte) {
	e.Helper()
	if err := e.mover().MoveBoard(e.Context(), e.name, driver.Move{Step: step, ID: id, Shared: true}); err != nil {
		e.Fatalf("step %d of a move of a shared board: %v", step, err)
	}
}
