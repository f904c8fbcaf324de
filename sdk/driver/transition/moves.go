package transition

import (
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// What a board is refused with that moves; see driver.MoveStep.
const (
	Frozen     = "the board is moving to another store, or has gone there: nothing may be changed here"       // Unavailable
	Gone       = "the board has gone to another store: ask again, as it is served from there"                 // likewise, of reads
	Receiving  = "the board is coming from another store: nothing else may be changed yet"                    // likewise
	OtherReign = "the claim in the other store is of another generation than the board: it cannot come along" // Precondition
	MoveEnded  = "the move that this import belongs to does not bring the board here, or has ended"           // Precondition

	anotherMove = "another move has taken the board"
	notTaken    = "the board was taken by this move for its other end"
	notLeft     = "the board was not left: only a board that has gone is emptied"
	emptied     = "the board was emptied where other programs look for its jobs: it does not come back by this move"
	notFrozen   = "the board is not frozen: only a board that is can be left"
	stillHeld   = "somebody holds a job of the board: only a board without claims can receive another one"
)

// A Passage is what moves have made of a board. A store keeps it with the board, as Bytes,
// and looks at it in the step that makes a change. The zero Passage is that of an open board.
type Passage struct {
	Move      [16]byte // that has taken the board; zero: none
	Receiving bool     // else it is frozen
	Gone      bool     // and nobody is told any more how its jobs stood
	Emptied   bool     // and its jobs are not where other programs look for them, or will not be
}

// The first byte of what a store keeps.
const (
	frozenMark    = 'F'
	receivingMark = 'R'
	goneMark      = 'L'
	emptiedMark   = 'E'
)

// Bytes is what a store keeps: nothing of an open board.
func (s Passage) Bytes() []byte {
	switch {
	case !s.taken():
		return nil
	case s.Receiving:
		return append([]byte{receivingMark}, s.Move[:]...)
	case s.Emptied:
		return append([]byte{emptiedMark}, s.Move[:]...)
	case s.Gone:
		return append([]byte{goneMark}, s.Move[:]...)
	}
	return append([]byte{frozenMark}, s.Move[:]...)
}

// ReadPassage reads what a store keeps.
func ReadPassage(b []byte) (Passage, error) {
	var s Passage
	if len(b) == 0 {
		return s, nil
	}
	if len(b) != 1+len(s.Move) || b[0] != frozenMark && b[0] != receivingMark && b[0] != goneMark && b[0] != emptiedMark {
		return s, job.Errorf(job.Corrupt, "what is kept of the board's move has %d bytes and begins with %d: want %d after %d, %d, %d or %d",
			len(b), b[0], len(s.Move), frozenMark, receivingMark, goneMark, emptiedMark)
	}
	s.Receiving, s.Gone, s.Emptied = b[0] == receivingMark, b[0] == goneMark || b[0] == emptiedMark, b[0] == emptiedMark
	copy(s.Move[:], b[1:])
	return s, nil
}

func (s Passage) taken() bool { return s.Move != [16]byte{} }

// After returns how the board stands after a step, or why that is not to be. claimed is how
// many claims the board has.
func (s Passage) After(m *driver.Move, claimed int64) (Passage, error) {
	wanted := Passage{
		Move: m.ID, Receiving: m.Step == driver.Receive || m.Step == driver.Admit, Gone: m.Step == driver.Leave || m.Step == driver.Empty,
		Emptied: m.Step == driver.Empty,
	}
	switch {
	case m.ID == [16]byte{}:
		return s, job.Errorf(job.Invalid, "the move has no id")
	case m.Step < driver.Freeze || m.Step > driver.Empty:
		return s, job.Errorf(job.Invalid, "there is no step %d of a move: want %d to %d", m.Step, driver.Freeze, driver.Empty)
	case s.taken() && s.Move != m.ID:
		return s, job.Errorf(job.Precondition, anotherMove)
	case s.taken() && s.Receiving != wanted.Receiving:
		return s, job.Errorf(job.Precondition, notTaken)
	case m.Step == driver.Leave && !s.taken():
		return s, job.Errorf(job.Precondition, notFrozen)
	case m.Step == driver.Empty && !s.Gone:
		return s, job.Errorf(job.Precondition, notLeft)
	case m.Step == driver.Thaw && s.Emptied:
		return s, job.Errorf(job.Precondition, emptied)
	case m.Step == driver.Freeze && s.Gone, m.Step == driver.Leave && s.Emptied: // it comes late
		return s, nil
	case m.Step == driver.Thaw || m.Step == driver.Admit:
		return Passage{}, nil
	case m.Step == driver.Receive && !s.taken() && claimed > 0:
		return s, job.Errorf(job.Precondition, stillHeld)
	}
	return wanted, nil
}

// Goes reports whether a step changes something on a board that stands so, and stands after
// it as After said. Receive always does: what was imported before it is not told to those who
// watched the old board meanwhile, who are perhaps at a position between the imports.
func (s Passage) Goes(m *driver.Move, after Passage) bool {
	return s != after || m.Step == driver.Receive
}

// Refuses returns the answer to an op that the board, in its generation, does not take as it
// stands.
func (s Passage) Refuses(op *driver.Op, generation uint64) (r driver.Result, refused bool) {
	mine := op.Import != nil && op.Import.Move != [16]byte{}
	switch {
	case op.Kind == driver.Tally && !op.Close && !op.Forget: // which changes nothing
		if err := s.Left(); err != nil {
			return driver.Failed(err), true
		}
		return r, false
	case mine && s.Receiving && op.Import.Move == s.Move:
		if then := op.Import.Then; then != nil && then.Kind == driver.Claim && then.Token.Generation != generation {
			return driver.Result{Kind: job.Precondition, Message: OtherReign}, true
		}
		return r, false
	case mine && (s.Receiving || !s.taken()):
		return driver.Result{Kind: job.Precondition, Message: MoveEnded}, true
	case s.taken() && s.Receiving:
		return driver.Result{Kind: job.Unavailable, Message: Receiving}, true
	case s.taken():
		return driver.Result{Kind: job.Unavailable, Message: Frozen}, true
	}
	return r, false
}

// TurnsAway reports whether a result is what a board answers to each change while it moves, and
// when it has: nothing was done, and it can be soon, in the other store.
func TurnsAway(kind job.Kind, message string) bool {
	return kind == job.Unavailable && (message == Frozen || message == Receiving)
}

// Left is the error of a read of the board's jobs; nil: it may be answered.
func (s Passage) Left() error {
	if s.Gone {
		return job.Errorf(job.Unavailable, Gone)
	}
	return nil
}

// Closed is the error of a change to a document of the board; nil: it may be made.
func (s Passage) Closed() error {
	if s.taken() && !s.Receiving {
		return job.Errorf(job.Unavailable, Frozen)
	}
	return nil
}
