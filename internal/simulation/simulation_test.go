package simulation_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/internal/simulation"
)

// A counter goes wrong when it is raised to 3 and then dropped, with the clock moved.
type counter struct {
	rec   *simulation.Recorder
	n     int
	began time.Time
}

func (c *counter) Close() {}

func (c *counter) Step(s *simulation.Step) error {
	c.rec.See(s.Do, s.Fault)
	c.rec.Note(uint64(c.n))
	switch {
	case s.Do == "raise":
		c.n++
	case s.Do == "wait":
		time.Sleep(time.Hour)
	case s.Fault == "hard" && c.n >= 3 && s.Choices[1] >= 2 && time.Since(c.began) > 0:
		return errors.New("it broke")
	case s.Choices[0] == 250:
		panic("no such choice")
	}
	return nil
}

func counting() *simulation.Game {
	return &simulation.Game{
		Name: "counting", Length: 80,
		Actions: []simulation.Action{
			{Name: "raise", Weight: 1},
			{Name: "wait", Weight: 1},
			{Name: "drop", Weight: 8, Most: []uint8{9, 9}, Faults: []string{"soft", "hard"}},
		},
		Open: func(rec *simulation.Recorder) simulation.World { return &counter{rec: rec, began: time.Now()} },
	}
}

func TestShrink(t *testing.T) {
	t.Parallel()
	g := counting()
	seed, r, found := g.Find(t, 0, 100)
	if !found || r.Problem != "it broke" {
		t.Fatalf("found %v: %q", found, r.Problem)
	}
	p := g.Shrink(t, g.Program(seed))
	if len(p) != 5 || p[4].String() != "drop/hard 0 2" || g.Run(t, p).Problem == "" {
		t.Errorf("shrunk to\n%swant three raises, a wait and drop/hard 0 2", p)
	}
	if again, err := g.Parse("# kept\n\n" + p.String()); err != nil || again.String() != p.String() {
		t.Errorf("written and read, it is\n%s, %v", again, err)
	}
	if report := g.Report(t, p); !strings.Contains(report, "it broke") || !strings.Contains(report, "drop/hard 0 2\n") {
		t.Errorf("the report is %q", report)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	g := counting()
	for line, want := range map[string]string{
		"fly": "no action", "drop/odd": "no fault", "drop 1 2 3 4 5 6 7 8 9 10 11": "11 choices", "drop 256": "out of range",
	} {
		if _, err := g.Parse(line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	p, err := g.Parse("drop 250")
	if err != nil {
		t.Fatal(err)
	}
	if r := g.Run(t, p); !strings.HasPrefix(r.Problem, "panic: no such choice") {
		t.Errorf("a panic is the problem %q", r.Problem)
	}
}

func TestProgram(t *testing.T) {
	t.Parallel()
	g := counting()
	if a, b := g.Program(7).String(), g.Program(7).String(); a != b || a == g.Program(8).String() {
		t.Error("a seed is not one program, or two seeds are")
	}
	c := simulation.Coverage{}
	for seed := range uint64(50) {
		c.Add(g.Run(t, g.Program(seed)).Coverage)
	}
	if unseen := c.Unseen(g.Possible()); len(unseen) > 0 {
		t.Errorf("never seen: %v", unseen)
	}
	if unseen := c.Unseen([]simulation.Pair{{One: "wait", Other: "hard"}}); len(unseen) != 1 {
		t.Error("what cannot be was seen")
	}
	if rare := c.Rarest(1); len(rare) != 1 || c[rare[0]] > c[simulation.Pair{One: "drop"}] {
		t.Errorf("the rarest is said to be %v of %v", rare, c)
	}
}
