package simulation

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
)

// A Run is what became of a program.
type Run struct {
	Steps    int
	Sum      uint64   // of the history: the same for the same program
	Problem  string   // what does not hold after the last step; empty: all of it does
	Told     []string // what each step did, if that was asked for
	Coverage Coverage
}

// Run runs a program in a bubble of testing/synctest.
func (g *Game) Run(t *testing.T, p Program) Run { return g.run(t, p, false) }

// Tell is Run, and says what each step did.
func (g *Game) Tell(t *testing.T, p Program) Run { return g.run(t, p, true) }

func (g *Game) run(t *testing.T, p Program, telling bool) (r Run) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		rec := &Recorder{seen: Coverage{}, telling: telling}
		w := g.Open(rec)
		defer w.Close()
		for i := range p {
			r.Steps++
			s := p[i] // a world may change it
			if r.Problem = step(w, &s, rec); r.Problem != "" {
				break
			}
		}
		r.Sum, r.Told, r.Coverage = rec.sum, rec.told, rec.seen
	})
	return r
}

// step takes one step. A panic is a problem like any other.
func step(w World, s *Step, rec *Recorder) (problem string) {
	defer func() {
		if p := recover(); p != nil {
			problem = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	rec.Tell("%v", s)
	if err := w.Step(s); err != nil {
		return err.Error()
	}
	return ""
}

// Report returns what is to be said of a program that went wrong: what does not hold,
// the program as it can be kept, and what each of its steps did.
func (g *Game) Report(t *testing.T, p Program) string {
	t.Helper()
	r := g.Tell(t, p)
	return fmt.Sprintf("%s\nthe program, for testdata/%s:\n%swhat it did:\n  %s",
		r.Problem, g.Name, p, strings.Join(r.Told, "\n  "))
}
