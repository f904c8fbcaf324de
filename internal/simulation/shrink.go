package simulation

import (
	"slices"
	"testing"
)

// shrinkRuns bounds how often a program is run while it is shrunk.
const shrinkRuns = 4000

// Shrink makes a program that goes wrong as short and plain as it can: steps are left
// out, faults taken away and choices lowered, as long as something still goes wrong.
func (g *Game) Shrink(t *testing.T, p Program) Program {
	t.Helper()
	s := &shrinker{g: g, t: t, p: slices.Clone(p), left: shrinkRuns}
	if r := g.Run(t, s.p); r.Problem != "" {
		s.p = s.p[:r.Steps]
	}
	for before := -1; before != s.left && s.left > 0; {
		before = s.left
		if !s.leaveOut() && !s.makePlain() {
			break
		}
	}
	return s.p
}

type shrinker struct {
	g    *Game
	t    *testing.T
	p    Program
	left int
}

// try takes q in place of the program if it still goes wrong.
func (s *shrinker) try(q Program) bool {
	s.t.Helper()
	if s.left--; s.left < 0 {
		return false
	}
	r := s.g.Run(s.t, q)
	if r.Problem == "" {
		return false
	}
	s.p = q[:r.Steps]
	return true
}

// leaveOut leaves out runs of steps, first long ones.
func (s *shrinker) leaveOut() (shorter bool) {
	s.t.Helper()
	for size := len(s.p) / 2; size > 0; size /= 2 {
		for at := len(s.p) - size; at >= 0; at -= size {
			if at+size > len(s.p) {
				continue
			}
			if s.try(slices.Delete(slices.Clone(s.p), at, at+size)) {
				shorter = true
			}
		}
	}
	return shorter
}

// makePlain takes faults away and lowers choices.
func (s *shrinker) makePlain() (plainer bool) {
	s.t.Helper()
	change := func(i int, edit func(*Step)) bool {
		q := slices.Clone(s.p)
		edit(&q[i])
		if q[i] == s.p[i] {
			return false
		}
		return s.try(q)
	}
	for i := 0; i < len(s.p); i++ {
		if change(i, func(st *Step) { st.Fault = "" }) {
			plainer = true
		}
		for k := 0; k < Choices && i < len(s.p); k++ {
			for i < len(s.p) && s.p[i].Choices[k] > 0 {
				if change(i, func(st *Step) { st.Choices[k] = 0 }) {
					plainer = true
					continue
				}
				if !change(i, func(st *Step) { st.Choices[k]-- }) {
					break
				}
				plainer = true
			}
		}
	}
	return plainer
}
