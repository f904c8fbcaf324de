package drivertest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var moveChecks = []check{
	{name: "moves/freeze", run: moving(moveFreeze)},
	{name: "moves/groups", run: moving(moveGroups)},
	{name: "moves/thaw", run: moving(moveThaw)},
	{name: "moves/leave", run: moving(moveLeave)},
	{name: "moves/empty", run: moving(moveEmpty)},
	{name: "moves/traffic", run: moving(moveTraffic)},
	{name: "moves/others", run: moving(moveOthers)},
	{name: "moves/receive", run: moving(moveReceive)},
	{name: "moves/again", run: moving(moveAgain)},
	{name: "moves/follows", run: moving(moveFollows)},
	{name: "moves/follows-claims", run: moving(moveFollowsClaims)},
	{name: "moves/admit", run: moving(moveAdmit)},
	{name: "moves/held", run: moving(moveHeld)},
	{name: "moves/claims", run: moving(moveClaims)},
	{name: "moves/lapse", run: moving(moveLapse), waits: true},
	{name: "moves/limits", run: moving(moveLimits)},
	{name: "moves/watch", run: moving(moveWatch)},
	{name: "moves/ended-by", run: moving(moveEndedBy)},
	{name: "moves/dropped", run: moving(moveDropped)},
	{name: "hosts/moves", run: ofCrowd((*crowd).moves)},
	{name: "moves/restart", run: restarted(moveRestart)},
}

// moving makes a check of a driver whose boards move. Of another one nothing is asked.
func moving(run func(e *env)) func(*env) {
	return func(e *env) {
		if e.mover() != nil {
			run(e)
		}
	}
}

// mover returns the driver as a Mover, or nil.
func (e *env) mover() driver.Mover {
	e.Helper()
	m, ok := e.driver.(driver.Mover)
	if !e.caps().Moves || !ok {
		e.Logf("the driver does not say that its boards move")
		return nil
	}
	return m
}

// step takes a step of a move.
func (e *env) step(step driver.MoveStep, id [16]byte) {
	e.Helper()
	if err := e.mover().MoveBoard(e.Context(), e.name, driver.Move{Step: step, ID: id}); err != nil {
		e.Fatalf("step %d of a move: %v", step, err)
	}
}

func (e *env) noStep(step driver.MoveStep, id [16]byte, want job.Kind, why string) {
	e.Helper()
	e.wantKind(e.mover().MoveBoard(e.Context(), e.name, driver.Move{Step: step, ID: id}), want, why)
}

// receive has the board take in jobs of another store, which was in a later generation.
func (e *env) receive(id [16]byte) {
	e.Helper()
	m := driver.Move{Step: driver.Receive, ID: id, Generation: e.status.Generation + 3, Position: e.status.Position + farAhead}
	if err := e.mover().MoveBoard(e.Context(), e.name, m); err != nil {
		e.Fatalf("Receive: %v", err)
	}
	e.openAgain()
	if e.status.Generation != m.Generation || e.status.Position <= m.Position {
		e.Errorf("a board that receives in generation %d after position %d is in %d, at %d", m.Generation, m.Position, e.status.Generation, e.status.Position)
	}
}

// farAhead is how much further on the other store's board was.
const farAhead = 1000

// openAgain opens the board once more, for a host that remembers nothing of it.
func (e *env) openAgain() {
	e.Helper()
	status, err := e.driver.OpenBoard(e.Context(), e.suite.spec(e.name))
	if err != nil {
		e.Fatalf("OpenBoard of a board that moves: %v", err)
	}
	if status.Loss != "" {
		e.Errorf("a board that moves is said to have lost something: %s", status.Loss)
	}
	e.status = status
}

// closed checks that nothing can be changed, of jobs in any state and of documents.
func (e *env) closed(c driver.Claimed, open, aside job.ID, version uint64, why string) {
	e.Helper()
	before := []driver.Record{e.read(c.Job), e.read(open), e.read(aside)}
	ops := []driver.Op{
		postOp(posting("not here")), claimOp("w", long, open), plain(driver.Update, open), plain(driver.Remove, open),
		plain(driver.Trash, open), plain(driver.Restore, aside), plain(driver.Purge, aside),
	}
	for _, kind := range tokenOps {
		ops = append(ops, byToken(kind, c))
	}
	if e.imports() {
		ops = append(ops, importOp(time.Hour))
	}
	for _, op := range ops {
		e.refused(op, job.Unavailable, why)
	}
	for i := range before {
		e.unchanged(&before[i], why)
	}
	docs := e.driver.Documents()
	_, err := docs.Put(e.Context(), e.shelf(), driver.Document{Name: "a", Data: []byte("c")}, version)
	e.wantKind(err, job.Unavailable, "Put: "+why)
	_, err = docs.Put(e.Context(), e.shelf(), driver.Document{Name: "new", Data: []byte("c")}, 0)
	e.wantKind(err, job.Unavailable, "Put of a new document: "+why)
	e.wantKind(docs.Delete(e.Context(), e.shelf(), "a", version), job.Unavailable, "Delete: "+why)
	doc, err := docs.Get(e.Context(), e.shelf(), "a")
	if err != nil || string(doc.Data) != "b" || doc.Version != version {
		e.Errorf("%s: the document is %q at version %d, %v: want it as it was", why, doc.Data, doc.Version, err)
	}
}

// moveFreeze checks that a frozen board can be read and not be changed, also after it is
// opened again, and that a board beside it goes on.
func moveFreeze(e *env) {
	open, held, aside := e.post(), e.post(), e.post()
	c := e.claim(held.ID, "w")
	e.must(plain(driver.Trash, aside.ID))
	version := e.put(e.shelf(), "a", "b", 0)
	id := random16()
	e.step(driver.Freeze, id)
	e.closed(c, open.ID, aside.ID, version, "the board is frozen")
	e.step(driver.Freeze, id)
	e.openAgain()
	e.closed(c, open.ID, aside.ID, version, "the board is frozen, and was opened again")
	if list, _ := e.scan(driver.ScanRequest{}); len(list) != 2 {
		e.Errorf("a scan of a frozen board found %d jobs, want 2", len(list))
	}
	other := &env{T: e.T, suite: e.suite, driver: e.driver, name: boardName("beside")}
	other.openBoard(nil)
	other.post()
	other.put(other.shelf(), "a", "b", 0)
}

// moveGroups checks that a board says how its groups stand while it is frozen, and while it
// receives, and that the move alone closes one then.
func moveGroups(e *env) {
	if !e.grouped() {
		return
	}
	e.must(postGrouped("g"))
	id := random16()
	for step, end := range map[driver.MoveStep]driver.MoveStep{driver.Freeze: driver.Thaw, driver.Receive: driver.Admit} {
		e.step(step, id)
		if step == driver.Receive {
			e.openAgain()
		}
		e.counts("g", driver.Group{Open: 1}, "the board moves")
		e.refused(closing("g"), job.Unavailable, "a group of a board that moves is closed")
		e.refused(driver.Op{Kind: driver.Tally, Group: "other", Forget: true}, job.Unavailable, "a group of a board that moves is forgotten")
		e.counts("g", driver.Group{Open: 1}, "the board moves, and somebody would have closed the group")
		ofMove := closing("old")
		ofMove.Import = &driver.Import{Move: id}
		if step == driver.Receive {
			e.must(ofMove)
			e.counts("old", driver.Group{Closed: true}, "the move has closed the group, as it was in the other store")
		} else {
			e.refused(ofMove, job.Unavailable, "a move closes a group of the board that it has frozen")
		}
		e.step(end, id)
	}
	e.refused(postGrouped("old"), job.Precondition, "a posting of a group that the move has closed")
	e.must(closing("g"))
	e.counts("g", driver.Group{Open: 1, Closed: true}, "the board was admitted")
}

// moveThaw checks that a board whose move was given up goes on as if nothing had been.
func moveThaw(e *env) {
	open, held := e.post(), e.post()
	c := e.claim(held.ID, "w")
	version := e.put(e.shelf(), "a", "b", 0)
	id := random16()
	e.step(driver.Thaw, id) // of a board that nobody froze
	e.step(driver.Freeze, id)
	e.refused(byToken(driver.Extend, c), job.Unavailable, "the board is frozen")
	e.step(driver.Thaw, id)
	e.step(driver.Thaw, id)
	e.must(byToken(driver.Extend, c))
	e.must(byToken(driver.Remove, c))
	e.claim(open.ID, "w")
	e.post()
	e.put(e.shelf(), "a", "c", version)
	e.openAgain()
	e.post()
}

// moveTraffic checks that what is under way when a board is frozen is done by then, or not at
// all.
func moveTraffic(e *env) {
	const clients = 8
	var working sync.WaitGroup
	var done, frozen atomic.Int64
	begun := make(chan struct{}, clients)
	for range clients {
		working.Go(func() {
			for n := 0; ; n++ {
				if n == 1 {
					begun <- struct{}{}
				}
				r := e.apply(postOp(posting("at work")))[0]
				switch r.Kind {
				case job.NoKind:
					done.Add(1)
				case job.Unavailable:
					frozen.Add(1)
					return
				default:
					e.Errorf("a post beside Freeze: %v", outcome(&r))
					return
				}
			}
		})
	}
	for range clients {
		<-begun
	}
	e.step(driver.Freeze, random16())
	list, _ := e.scan(driver.ScanRequest{})
	working.Wait()
	if after, _ := e.scan(driver.ScanRequest{}); len(after) != len(list) {
		e.Errorf("when Freeze returned there were %d jobs, and %d when those who posted had ended", len(list), len(after))
	}
	if int64(len(list)) != done.Load() || frozen.Load() != clients {
		e.Errorf("%d posts were acknowledged and %d clients refused, and there are %d jobs: want as many, and %d", done.Load(), frozen.Load(), len(list), clients)
	}
}

// moveOthers checks that a move has a board for itself, and one end of it.
func moveOthers(e *env) {
	mine, other := random16(), random16()
	e.noStep(driver.Freeze, [16]byte{}, job.Invalid, "a move without an id")
	e.noStep(0, mine, job.Invalid, "no step")
	e.noStep(driver.Empty+1, mine, job.Invalid, "a step that there is not")
	e.step(driver.Freeze, mine)
	for _, step := range []driver.MoveStep{driver.Freeze, driver.Thaw, driver.Receive, driver.Admit} {
		e.noStep(step, other, job.Precondition, "a step of another move with a frozen board")
	}
	e.noStep(driver.Receive, mine, job.Precondition, "Receive of a frozen board")
	e.noStep(driver.Admit, mine, job.Precondition, "Admit of a frozen board")
	e.refused(postOp(posting("p")), job.Unavailable, "steps of other moves change nothing")
	e.step(driver.Thaw, mine)
	e.receive(mine)
	e.noStep(driver.Thaw, mine, job.Precondition, "Thaw of a board that receives")
	e.noStep(driver.Admit, other, job.Precondition, "Admit by another move")
	e.refused(postOp(posting("p")), job.Unavailable, "steps of other moves change nothing")
	e.step(driver.Admit, mine)
	e.step(driver.Admit, mine)
	e.post()
}

// movedOp is an import that belongs to a move.
func movedOp(id [16]byte) driver.Op {
	op := importOp(time.Hour)
	op.Import.Move = id
	return op
}

// moveReceive checks that a board which receives takes the imports of its move and nothing
// else.
func moveReceive(e *env) {
	id := random16()
	version := e.put(e.shelf(), "a", "b", 0)
	e.refused(movedOp(id), job.Precondition, "an import of a move for which the board does not receive")
	e.receive(id)
	e.refused(postOp(posting("p")), job.Unavailable, "a post on a board that receives")
	e.refused(importOp(time.Hour), job.Unavailable, "an import of no move on a board that receives")
	e.refused(movedOp(random16()), job.Precondition, "an import of another move")
	open, aside, gone := movedOp(id), after(movedOp(id), driver.Trash, time.Minute), after(movedOp(id), driver.Remove, time.Minute)
	for _, op := range []driver.Op{open, aside, gone} {
		r := e.must(op)
		e.again(op, &r, "imported again")
	}
	e.refused(claimOp("w", long, open.Job), job.Unavailable, "a claim on a board that receives")
	e.refused(plain(driver.Remove, open.Job), job.Unavailable, "a job of a board that receives is canceled")
	version = e.put(e.shelf(), "a", "of the other store", version)
	e.put(e.shelf(), "new", "likewise", 0)
	if err := e.driver.Documents().Delete(e.Context(), e.shelf(), "a", version); err != nil {
		e.Errorf("Delete on a board that receives, whose documents come along, too: %v", err)
	}
	e.state(open.Job, job.Unclaimed, "imported")
	e.state(aside.Job, job.Trashed, "imported")
	e.state(gone.Job, job.Complete, "imported")
}

// moveAdmit checks that a board goes on in its new generation, and that what comes late from
// whoever moved it is refused.
func moveAdmit(e *env) {
	id, before := random16(), e.status.Generation
	e.receive(id)
	op := movedOp(id)
	e.must(op)
	e.step(driver.Admit, id)
	e.refused(movedOp(id), job.Precondition, "an import after Admit")
	e.refused(op, job.Precondition, "an import that comes again after Admit")
	c := e.claim(op.Job, "w")
	if c.Token.Generation != before+3 || c.Token.Epoch <= farAhead {
		e.Errorf("a token after the move is of generation %d, epoch %d: want %d, and above %d", c.Token.Generation, c.Token.Epoch, before+3, farAhead)
	}
	e.must(byToken(driver.Remove, c))
	e.refused(op, job.Precondition, "an import that comes again after its job has ended")
	e.openAgain()
	if e.status.Generation != before+3 {
		e.Errorf("after the move the board is in generation %d: want %d", e.status.Generation, before+3)
	}
	e.post()
}

// moveWatch checks that whoever watched the old board begins anew at the new one.
func moveWatch(e *env) {
	id := random16()
	e.receive(id)
	old := []driver.Position{1, farAhead, e.status.Position - 1}
	for range 5 {
		r := e.must(movedOp(id))
		old = append(old, r.Position) // the old board goes on, and is somewhere between the imports when it is frozen
	}
	between := old[len(old)-3]
	m := driver.Move{Step: driver.Receive, ID: id, Generation: e.status.Generation, Position: between}
	if err := e.mover().MoveBoard(e.Context(), e.name, m); err != nil {
		e.Fatalf("Receive, with a position that imports have gone beyond: %v", err)
	}
	e.openAgain()
	op, _ := e.heldOp(movedOp(id), long)
	e.must(op)
	e.step(driver.Admit, id)
	for _, after := range old[:len(old)-2] {
		for changes, err := range e.driver.Watch(e.Context(), e.name, after) {
			if err != nil {
				e.Fatalf("Watch: %v", err)
			}
			if !changes.Resync || changes.Position <= farAhead {
				e.Errorf("a watch from position %d of the old board begins with %+v: want Resync, beyond %d", after, changes, farAhead)
			}
			break
		}
	}
}

// moveDropped checks that what is left of a board that has gone can be dropped, and that it
// is a new one then.
func moveDropped(e *env) {
	e.post()
	e.put(e.shelf(), "a", "b", 0)
	e.step(driver.Freeze, random16())
	if err := e.driver.DropBoard(e.Context(), e.name); err != nil {
		e.Fatalf("DropBoard of a frozen board: %v", err)
	}
	e.openAgain()
	if list, _ := e.scan(driver.ScanRequest{}); len(list) != 0 {
		e.Errorf("a board that was dropped has %d jobs", len(list))
	}
	e.post()
	e.put(e.shelf(), "a", "b", 0)
}

// moves checks that all hosts of a store keep to a move.
func (c *crowd) moves() {
	first, last := c.hosts[0], c.hosts[len(c.hosts)-1]
	if first.mover() == nil {
		return
	}
	id := random16()
	p := first.post()
	version := first.put(first.shelf(), "a", "b", 0)
	first.step(driver.Freeze, id)
	for _, h := range c.hosts {
		h.refused(postOp(posting("p")), job.Unavailable, "another host froze the board")
		h.refused(claimOp("w", long, p.ID), job.Unavailable, "another host froze the board")
		_, err := h.driver.Documents().Put(h.Context(), h.shelf(), driver.Document{Name: "a"}, version)
		h.wantKind(err, job.Unavailable, "Put where another host froze the board")
		h.state(p.ID, job.Unclaimed, "another host froze the board")
	}
	first.step(driver.Leave, id)
	for _, h := range c.hosts {
		h.left([]job.ID{p.ID}, "another host has left the board")
	}
	last.step(driver.Thaw, id)
	for _, h := range c.hosts {
		h.post()
	}
	last.receive(id)
	first.noStep(driver.Freeze, random16(), job.Precondition, "another host's board receives")
	op := movedOp(id)
	for _, h := range c.hosts[:len(c.hosts)-1] {
		if r := h.do(postOp(posting("p"))); r.Kind == job.NoKind {
			h.Errorf("another host's board receives, and a post was done")
		}
		if _, err := h.driver.OpenBoard(h.Context(), h.suite.spec(h.name)); err != nil { // what it says of the generation is right
			h.Fatalf("OpenBoard of a board that another host has receive: %v", err)
		}
		r := h.do(op)
		if r.Kind != job.NoKind {
			h.Errorf("an import of a move that another host began: %v", outcome(&r))
		}
	}
	first.step(driver.Admit, id)
	for _, h := range c.hosts {
		h.refused(movedOp(id), job.Precondition, "another host admitted the board")
		h.post()
	}
	if first.caps().Empties {
		c.empty(p.ID)
	}
}

// empty checks that all hosts keep to it that one of them has emptied the board.
func (c *crowd) empty(left job.ID) {
	first, last := c.hosts[0], c.hosts[len(c.hosts)-1]
	id := random16()
	first.shared(driver.Freeze, id)
	last.shared(driver.Leave, id)
	for _, h := range c.hosts {
		h.shared(driver.Empty, id)
		for _, other := range c.hosts {
			other.left([]job.ID{left}, "a host has emptied the board")
			other.noStep(driver.Thaw, id, job.Precondition, "a host has emptied the board")
		}
	}
}

// moveRestart checks that a move outlasts the driver.
func moveRestart(e *env, restart func()) {
	if e.mover() == nil {
		return
	}
	open, held, aside := e.post(), e.post(), e.post()
	c := e.claim(held.ID, "w")
	e.must(plain(driver.Trash, aside.ID))
	version := e.put(e.shelf(), "a", "b", 0)
	id := random16()
	e.step(driver.Freeze, id)
	restart()
	e.closed(c, open.ID, aside.ID, version, "the board was frozen before a restart")
	e.step(driver.Leave, id)
	restart()
	e.left([]job.ID{open.ID, held.ID, aside.ID}, "the board was left before a restart")
	e.step(driver.Thaw, id)
	restart()
	e.must(byToken(driver.Remove, c))
	if err := e.mover().MoveBoard(e.Context(), e.name, driver.Move{Step: driver.Receive, ID: id}); err != nil {
		e.Fatalf("Receive: %v", err)
	}
	e.openAgain()
	op, claim := e.heldOp(movedOp(id), long)
	e.must(op)
	restart()
	e.refused(postOp(posting("p")), job.Unavailable, "the board received before a restart")
	e.again(op, nil, "imported before a restart")
	e.step(driver.Admit, id)
	restart()
	e.refused(movedOp(id), job.Precondition, "the board was admitted before a restart")
	e.must(byToken(driver.Remove, claim))
	e.post()
	if !e.caps().Empties {
		return
	}
	e.shared(driver.Freeze, id)
	restart()
	e.shared(driver.Leave, id)
	restart()
	e.shared(driver.Empty, id)
	restart()
	e.noStep(driver.Thaw, id, job.Precondition, "the board was emptied before a restart")
	e.left([]job.ID{open.ID}, "the board was emptied before a restart")
	e.shared(driver.Empty, id)
}
