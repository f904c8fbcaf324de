package acknowledged_test

import (
	"context"
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
