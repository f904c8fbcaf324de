package driver

import (
	"encoding/binary"
	"fmt"

	"github.com/boardd/boardd/sdk/job"
)

// A Witness is one reading of a board: which store it is in, its generation and its
// position. The host keeps the last one, so that a store that was rolled back or
// replaced is found out at the next OpenBoard. It is for stores that have an id of
// their own and keep generation and position together with the jobs; others may give
// any bytes as BoardStatus.Witness.
type Witness struct {
	Store      [8]byte // random, kept in the store before the first board is opened
	Generation uint64
	Position   Position
}

const witnessSize = 24

// Bytes encodes the witness for BoardStatus.Witness.
func (w Witness) Bytes() []byte {
	b := make([]byte, 0, witnessSize)
	b = binary.BigEndian.AppendUint64(append(b, w.Store[:]...), w.Generation)
	return binary.BigEndian.AppendUint64(b, uint64(w.Position))
}

// Compare compares w, which the store has now, with spec.Witness and spec.Seen, which
// the host remembers. It returns the generation in which the board goes on, and the
// text for BoardStatus.Loss. If that generation is higher than w's, the store must
// write it down and make every claim lapse before OpenBoard returns: the epochs of
// tokens that were lost will be given out again.
func (w Witness) Compare(spec *BoardSpec) (generation uint64, loss string, err error) {
	var before Witness
	switch b := spec.Witness; len(b) {
	case 0:
		before = w
	case witnessSize:
		before = Witness{[8]byte(b), binary.BigEndian.Uint64(b[8:]), Position(binary.BigEndian.Uint64(b[16:]))}
	default:
		return 0, "", job.Errorf(job.Invalid, "the board's witness has %d bytes: want the %d that this driver gave", len(b), witnessSize)
	}
	switch {
	case before.Store == w.Store && before.Generation < w.Generation: // whatever else it says is from before
		return w.Generation, fmt.Sprintf("the board lost changes before, and is in generation %d since, after generation %d", w.Generation, before.Generation), nil
	case before.Store != w.Store || before.Generation > w.Generation || max(before.Position, spec.Seen) > w.Position:
		return max(before.Generation, w.Generation) + 1, "the store is gone or was put back to an earlier state: what was done on this board since is lost", nil
	}
	return w.Generation, "", nil
}

// Check refuses, as Invalid, a board whose name no store takes.
func (s *BoardSpec) Check() error {
	if n := len(s.Name); n == 0 || n > MaxBoardName {
		return job.Errorf(job.Invalid, "the board's name has %d bytes: want 1 to %d", n, MaxBoardName)
	}
	return nil
}

// WithDefaults sets Window and MaxTombstones to their defaults where they are not
// positive.
func (s BoardSpec) WithDefaults() BoardSpec {
	if s.Window <= 0 {
		s.Window = DefaultWindow
	}
	if s.MaxTombstones <= 0 {
		s.MaxTombstones = DefaultMaxTombstones
	}
	return s
}
