package host_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/boardd/boardd/host"
	hostboard "github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/tenant"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// seenSteps are the steps of moves that a store has taken, and what it answers to Empty.
type seenSteps struct {
	mu     sync.Mutex
	steps  []driver.MoveStep
	shared bool // of the last step
	late   error
}

func (s *seenSteps) took(m *driver.Move) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.shared = append(s.steps, m.Step), m.Shared
	if m.Step == driver.Empty {
		return s.late
	}
	return nil
}

func (s *seenSteps) of(step driver.MoveStep) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.steps {
		if one == step {
			n++
		}
	}
	return n
}

func (s *seenSteps) answer(late error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = late
}

func (l lent) MoveBoard(ctx context.Context, board string, m driver.Move) error {
	if err := l.Mover.MoveBoard(ctx, board, m); err != nil {
		return err
	}
	return l.seen.took(&m)
}

func (d *deployment) moveShared(to string, o host.MoveOptions) (catalog.Move, []string, error) {
	d.Helper()
	return d.as[0].MoveBoard(within(d.T), tenant.Default, "builds", to, o)
}

const sharedPlace = `{"namespace":"octavia_jobboard"}`

// TestMoveSharedRefused: a board for which other programs may look moves only once somebody says
// that they were stopped; a dry run says so, who is there, and what cannot come along.
func TestMoveSharedRefused(t *testing.T) {
	t.Parallel()
	d := deployAt(t, sharedPlace)
	d.post(1)
	if _, err := d.board(0).RegisterEntity(within(t), hostboard.Entity{Kind: "conductor", Name: "my@host"}, 0); err != nil {
		t.Fatal(err)
	}
	_, notes, err := d.moveShared("two", host.MoveOptions{Dry: true})
	if said := strings.Join(notes, "\n"); err != nil || !strings.Contains(said, "--taskflow-stopped") || !strings.Contains(said, "conductor my@host") {
		t.Errorf("a dry run says %q, %v: want who is to be stopped", said, err)
	}
	if _, notes, err = d.moveShared("two", host.MoveOptions{Dry: true, Stopped: true}); err != nil || strings.Contains(strings.Join(notes, "\n"), "--taskflow-stopped") {
		t.Errorf("a dry run where they are stopped says %q, %v", notes, err)
	}
	if _, _, err := d.moveShared("two", host.MoveOptions{}); job.KindOf(err) != job.Precondition || !strings.Contains(err.Error(), "--taskflow-stopped") {
		t.Errorf("a shared board moves: %v, want %v", err, job.Precondition)
	}
	if n := len(d.one.seen.steps); n != d.one.seen.of(driver.Thaw) {
		t.Errorf("what was refused took the steps %v", d.one.seen.steps)
	}
}

// TestMoveSharedGoesOn kills the host that moves such a board at each step: the board is emptied in
// its old store, before the new one admits anybody, and no job is lost.
func TestMoveSharedGoesOn(t *testing.T) {
	t.Parallel()
	for _, step := range append(slices.Clone(moveSteps), "empty") {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			d := deployAt(t, sharedPlace)
			dead := d.killAt(step)
			w := d.work()
			if _, _, err := d.moveShared("two", host.MoveOptions{Stopped: true}); err != nil {
				t.Fatal(err)
			}
			d.until(catalog.Moved)
			if !dead.Load() {
				t.Errorf("the step %q was never reached", step)
			}
			if n := d.one.seen.of(driver.Empty); n == 0 || !d.one.seen.shared || d.two.seen.of(driver.Empty) > 0 {
				t.Errorf("the old store took the steps %v, and the new one %v: want the old one emptied", d.one.seen.steps, d.two.seen.steps)
			}
			w.end()
		})
	}
}

// TestMoveOfAPlaceOfBoarddsOwn empties a board that lies where people said, though only boardd is
// said to write to it, and none at a place that boardd chose.
func TestMoveOfAPlaceOfBoarddsOwn(t *testing.T) {
	t.Parallel()
	for settings, emptied := range map[string]bool{`{"namespace":"mine","foreign":false}`: true, "": false, `{"namespace":"boardd:{default/builds}","foreign":false}`: false} {
		d := deployAt(t, settings)
		d.post(1)
		d.move(0, "two")
		d.until(catalog.Moved)
		if n := d.one.seen.of(driver.Empty); n > 0 != emptied {
			t.Errorf("a board with the settings %s was emptied %d times: want that it is: %v", settings, n, emptied)
		}
	}
}

// TestMoveWaitsForForeignClaims: where another program has claimed a job since the board was left
// nobody is admitted until that ends, and the move says so; what it has posted or ended is said of
// a board that has moved.
func TestMoveWaitsForForeignClaims(t *testing.T) {
	t.Parallel()
	d := deployAt(t, sharedPlace)
	id := d.post(1)[0]
	d.one.seen.answer(job.Errorf(job.Unavailable, "a conductor holds a job"))
	if _, _, err := d.moveShared("two", host.MoveOptions{Stopped: true}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the move says what it waits for", func() bool {
		m, err := d.as[1].Move(within(t), tenant.Default, "builds")
		return err == nil && m.State == catalog.Switched && strings.Contains(m.Problem, "a conductor holds a job")
	})
	if n := d.two.seen.of(driver.Admit); n > 0 {
		t.Errorf("the new store admits while another program holds a job in the old one")
	}
	if _, err := d.as[1].AbandonMove(within(t), tenant.Default, "builds"); job.KindOf(err) != job.Precondition {
		t.Errorf("a move that waits after the switch is given up: %v, want %v", err, job.Precondition)
	}
	d.one.seen.answer(job.Errorf(job.AlreadyExists, "a conductor has posted a job"))
	if m := d.until(catalog.Moved); !strings.Contains(m.Problem, "a conductor has posted a job") {
		t.Errorf("the move is %+v: want that it says what came late", m)
	}
	if got := d.claim(1)[0].Job.ID; got != id {
		t.Errorf("after the move the job %v is claimed, want %v", got, id)
	}
}
