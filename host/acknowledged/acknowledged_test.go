package acknowledged_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/boardd/boardd/host/acknowledged"
	"github.com/boardd/boardd/host/memory"
	"github.com/boardd/boardd/sdk/driver"
)

// opening is a driver that says what it is reminded of.
type opening struct {
	driver.Driver
	spec driver.BoardSpec
}

func (o *opening) OpenBoard(_ context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	o.spec = spec
	return driver.BoardStatus{Position: 7, Witness: []byte("as it was")}, nil
}

// remembered returns what a host knows of a backend's boards, and a driver on it through which it
// learns that and reminds d.
func remembered(t *testing.T) (known *acknowledged.Backend, through driver.Driver, d *opening) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	m, err := memory.Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	d = &opening{}
	known = acknowledged.Of("red", m, quiet)
	return known, known.Through(d, func(time.Duration) {}), d
}

// TestCame opens a board again and again, which moves away and comes back.
func TestCame(t *testing.T) {
	t.Parallel()
	known, remembering, d := remembered(t)
	for i, step := range []struct {
		came string // by which move; empty: none
		want string
	}{
		{"", ""}, {"", "as it was"}, {"one", ""}, {"one", "as it was"}, {"two", ""}, {"two", "as it was"},
	} {
		if step.came != "" {
			known.Came("default/builds", step.came)
		}
		if _, err := remembering.OpenBoard(t.Context(), driver.BoardSpec{Name: "default/builds"}); err != nil {
			t.Fatal(err)
		}
		if string(d.spec.Witness) != step.want || (d.spec.Seen > 0) != (step.want != "") {
			t.Errorf("%d: after the move %q the driver is reminded of %q and %d, want %q", i, step.came, d.spec.Witness, d.spec.Seen, step.want)
		}
	}
}

// TestMade: of a board that was deleted and made anew by another host nothing is remembered, and
// nothing is forgotten of one that was not.
func TestMade(t *testing.T) {
	t.Parallel()
	known, remembering, d := remembered(t)
	for i, step := range []struct {
		id   string // of the board in the catalog; empty: a boardd that does not ask, or gone
		gone bool
		want string
	}{
		{"", false, ""}, {"1", false, "as it was"}, {"1", false, "as it was"}, {"2", false, ""}, {"2", false, "as it was"}, {"", true, ""}, {"3", false, "as it was"},
	} {
		if step.gone {
			known.Gone("default/builds")
		} else if step.id != "" {
			known.Made("default/builds", step.id)
		}
		if _, err := remembering.OpenBoard(t.Context(), driver.BoardSpec{Name: "default/builds"}); err != nil {
			t.Fatal(err)
		}
		if string(d.spec.Witness) != step.want || (d.spec.Seen > 0) != (step.want != "") {
			t.Errorf("%d: the driver is reminded of %q and %d, want %q", i, d.spec.Witness, d.spec.Seen, step.want)
		}
	}
}

// forgetful is a store that was started again: whoever remembers nothing can't be told whether
// it has lost something.
type forgetful struct {
	opening
	asked int
	fail  error // of an opening with a witness
}

func (f *forgetful) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	f.asked++
	status, err := f.opening.OpenBoard(ctx, spec)
	if spec.Witness == nil {
		status.Loss = "it cannot be told"
		return status, err
	}
	return status, errors.Join(err, f.fail)
}

// TestLearn opens a board that another host had open. Of what the two know, the driver is reminded
// of what is later, until this host has opened the board itself.
func TestLearn(t *testing.T) {
	t.Parallel()
	known, _, _ := remembered(t)
	d := &forgetful{}
	through := known.Through(d, func(time.Duration) {})
	open := func(board string, wantLoss bool, wantAsked int) {
		t.Helper()
		d.asked = 0
		status, err := through.OpenBoard(t.Context(), driver.BoardSpec{Name: board})
		if err != nil || (status.Loss != "") != wantLoss || d.asked != wantAsked {
			t.Errorf("%s: loss %q, %v, asked %d times; want a loss: %v, asked %d times", board, status.Loss, err, d.asked, wantLoss, wantAsked)
		}
	}
	known.Learn("told", acknowledged.Board{Position: 5, Witness: []byte("of another host")})
	d.fail = errors.New("the store is away")
	if _, err := through.OpenBoard(t.Context(), driver.BoardSpec{Name: "told"}); err == nil {
		t.Error("an opening that failed is none")
	}
	d.fail = nil
	open("told", false, 1)
	if string(d.spec.Witness) != "of another host" || d.spec.Seen != 5 {
		t.Errorf("the driver is reminded of %q and %d", d.spec.Witness, d.spec.Seen)
	}
	open("told", false, 1)
	if string(d.spec.Witness) != "as it was" {
		t.Errorf("the driver is reminded of %q once this host knows the board itself", d.spec.Witness)
	}
	for _, c := range []struct {
		position driver.Position
		want     string
	}{{6, "as it was"}, {7, "as it was"}, {8, "later"}} {
		known.Learn("told", acknowledged.Board{Position: c.position, Witness: []byte("later")})
		open("told", false, 1)
		if string(d.spec.Witness) != c.want {
			t.Errorf("at 7 here and at %d there the driver is reminded of %q, want %q", c.position, d.spec.Witness, c.want)
		}
	}
	open("untold", true, 1)
	known.Learn("of an older host", acknowledged.Board{})
	open("of an older host", true, 1)
}

// answering is a store that acknowledges a change while it is opened.
type answering struct {
	opening
	meanwhile func()
	fail      error
}

func (a *answering) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	a.meanwhile()
	status, err := a.opening.OpenBoard(ctx, spec)
	return status, errors.Join(err, a.fail)
}

func (a *answering) Apply(_ context.Context, _ string, ops []driver.Op) []driver.Result {
	return []driver.Result{{Position: driver.Position(ops[0].Version)}}
}

// TestAcknowledgedMeanwhile: what is acknowledged while a board is opened is written down with
// the witness of that opening, never beside the one of before; and it is written down if the
// opening fails, too.
func TestAcknowledgedMeanwhile(t *testing.T) {
	t.Parallel()
	quiet := slog.New(slog.DiscardHandler)
	m, err := memory.Open(t.TempDir(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	d := &answering{}
	through := acknowledged.Of("red", m, quiet).Through(d, func(time.Duration) {})
	written := func() acknowledged.Board { return acknowledged.Recall(m.Get(acknowledged.Key("red", "b"))) }
	next := driver.Position(10)
	d.meanwhile = func() {
		before := written()
		through.Apply(t.Context(), "b", []driver.Op{{Version: uint64(next)}})
		if got := written(); got.Position != before.Position {
			t.Errorf("change %d was written down beside the witness of before", next)
		}
	}
	for _, fail := range []error{nil, errors.New("the store is away")} {
		d.fail, next = fail, next+10
		if _, err := through.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"}); (err != nil) != (fail != nil) {
			t.Fatal(err)
		}
		if got := written(); got.Position != next || string(got.Witness) != "as it was" {
			t.Errorf("after an opening with the error %v %d is written down, with the witness %q: want %d", fail, got.Position, got.Witness, next)
		}
	}
}
