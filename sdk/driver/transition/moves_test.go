package transition_test

import (
	"testing"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/transition"
	"github.com/boardd/boardd/sdk/job"
)

// TestPassage goes through all steps from all that a board can be.
func TestPassage(t *testing.T) {
	t.Parallel()
	mine, other := [16]byte{1}, [16]byte{2}
	open, frozen, receiving := transition.Passage{}, transition.Passage{Move: mine}, transition.Passage{Move: mine, Receiving: true}
	gone, emptied := transition.Passage{Move: mine, Gone: true}, transition.Passage{Move: mine, Gone: true, Emptied: true}
	const refused = job.Precondition
	for _, tc := range []struct {
		name    string
		from    transition.Passage
		step    driver.MoveStep
		id      [16]byte
		claimed int64
		to      transition.Passage
		kind    job.Kind
	}{
		{"freeze", open, driver.Freeze, mine, 3, frozen, 0},
		{"freeze again", frozen, driver.Freeze, mine, 3, frozen, 0},
		{"leave", frozen, driver.Leave, mine, 3, gone, 0},
		{"leave again", gone, driver.Leave, mine, 3, gone, 0},
		{"a freeze that comes late", gone, driver.Freeze, mine, 3, gone, 0},
		{"empty", gone, driver.Empty, mine, 3, emptied, 0},
		{"empty again", emptied, driver.Empty, mine, 3, emptied, 0},
		{"empty what is open", open, driver.Empty, mine, 0, open, refused},
		{"empty what is frozen", frozen, driver.Empty, mine, 0, frozen, refused},
		{"empty what receives", receiving, driver.Empty, mine, 0, receiving, refused},
		{"another empties", gone, driver.Empty, other, 0, gone, refused},
		{"a freeze of what is empty", emptied, driver.Freeze, mine, 3, emptied, 0},
		{"leave what is empty", emptied, driver.Leave, mine, 3, emptied, 0},
		{"thaw what is empty", emptied, driver.Thaw, mine, 0, emptied, refused},
		{"another thaws what is empty", emptied, driver.Thaw, other, 0, emptied, refused},
		{"admit what is empty", emptied, driver.Admit, mine, 0, emptied, refused},
		{"receive what is empty", emptied, driver.Receive, mine, 0, emptied, refused},
		{"leave what is open", open, driver.Leave, mine, 0, open, refused},
		{"leave what receives", receiving, driver.Leave, mine, 0, receiving, refused},
		{"another leaves", frozen, driver.Leave, other, 0, frozen, refused},
		{"another freezes what has gone", gone, driver.Freeze, other, 0, gone, refused},
		{"receive what has gone", gone, driver.Receive, mine, 0, gone, refused},
		{"admit what has gone", gone, driver.Admit, mine, 0, gone, refused},
		{"thaw what has gone", gone, driver.Thaw, mine, 0, open, 0},
		{"thaw", frozen, driver.Thaw, mine, 0, open, 0},
		{"thaw again", open, driver.Thaw, mine, 0, open, 0},
		{"receive", open, driver.Receive, mine, 0, receiving, 0},
		{"receive with a claim", open, driver.Receive, mine, 1, open, refused},
		{"receive again, with the claims that came", receiving, driver.Receive, mine, 1, receiving, 0},
		{"admit", receiving, driver.Admit, mine, 1, open, 0},
		{"admit again", open, driver.Admit, mine, 1, open, 0},
		{"thaw what receives", receiving, driver.Thaw, mine, 0, receiving, refused},
		{"admit what is frozen", frozen, driver.Admit, mine, 0, frozen, refused},
		{"receive what is frozen", frozen, driver.Receive, mine, 0, frozen, refused},
		{"freeze what receives", receiving, driver.Freeze, mine, 0, receiving, refused},
		{"another thaws", frozen, driver.Thaw, other, 0, frozen, refused},
		{"another admits", receiving, driver.Admit, other, 0, receiving, refused},
		{"another freezes", frozen, driver.Freeze, other, 0, frozen, refused},
		{"no id", open, driver.Freeze, [16]byte{}, 0, open, job.Invalid},
		{"no step", open, 0, mine, 0, open, job.Invalid},
		{"a step too far", open, driver.Empty + 1, mine, 0, open, job.Invalid},
	} {
		to, err := tc.from.After(&driver.Move{Step: tc.step, ID: tc.id}, tc.claimed)
		if job.KindOf(err) != tc.kind || to != tc.to {
			t.Errorf("%s: got %+v, %v, want %+v, %v", tc.name, to, err, tc.to, tc.kind)
		}
		again, err := transition.ReadPassage(to.Bytes())
		if err != nil || again != to {
			t.Errorf("%s: %+v is kept, and read as %+v, %v", tc.name, to, again, err)
		}
	}
	for _, kept := range [][]byte{{'F'}, append([]byte{'X'}, mine[:]...), append([]byte{'R', 0}, mine[:]...)} {
		if p, err := transition.ReadPassage(kept); job.KindOf(err) != job.Corrupt {
			t.Errorf("%q is read as %+v, %v: want CORRUPT", kept, p, err)
		}
	}
}

// TestPassageGoes checks when a step has something to write.
func TestPassageGoes(t *testing.T) {
	t.Parallel()
	open, receiving := transition.Passage{}, transition.Passage{Move: [16]byte{1}, Receiving: true}
	for _, tc := range []struct {
		name          string
		before, after transition.Passage
		step          driver.MoveStep
		want          bool
	}{
		{"receive", open, receiving, driver.Receive, true},
		{"receive again", receiving, receiving, driver.Receive, true},
		{"admit", receiving, open, driver.Admit, true},
		{"admit again", open, open, driver.Admit, false},
	} {
		if got := tc.before.Goes(&driver.Move{Step: tc.step, ID: [16]byte{1}}, tc.after); got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
	}
}
