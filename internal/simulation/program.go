// Package simulation steps a part of boardd through random programs: without
// goroutines of its own, on a clock that only a step moves, and with faults at
// every step. A seed is one program for good, so what went wrong once is found
// again, shrunk to the steps that it takes, and kept as a test.
//
// What is stepped, and what has to hold, a Game says; see the packages below this
// one.
package simulation

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Choices is how many choices a step has at most.
const Choices = 10

// A Step is one line of a program. A World makes sense of it in whatever state it
// is, so that any steps can be left out of a program.
type Step struct {
	Do      string
	Fault   string // what goes wrong with it; empty: nothing
	Choices [Choices]uint8
}

// String returns the step as a line of a program: "do/fault 1 0 2", without the
// zeros at the end.
func (s *Step) String() string {
	var b strings.Builder
	b.WriteString(s.Do)
	if s.Fault != "" {
		b.WriteString("/" + s.Fault)
	}
	last := Choices
	for last > 0 && s.Choices[last-1] == 0 {
		last--
	}
	for _, c := range s.Choices[:last] {
		b.WriteString(" " + strconv.Itoa(int(c)))
	}
	return b.String()
}

// A Program is what a world is taken through.
type Program []Step

// String returns one line for each step.
func (p Program) String() string {
	var b strings.Builder
	for i := range p {
		b.WriteString(p[i].String() + "\n")
	}
	return b.String()
}

// Parse reads what String writes. Empty lines, and those that begin with #, are left
// out.
func (g *Game) Parse(text string) (Program, error) {
	var p Program
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		step, err := g.parseStep(line)
		if err != nil {
			return nil, fmt.Errorf("line %d, %q: %w", n, line, err)
		}
		p = append(p, step)
	}
	return p, lines.Err()
}

func (g *Game) parseStep(line string) (Step, error) {
	fields := strings.Fields(line)
	var s Step
	s.Do, s.Fault, _ = strings.Cut(fields[0], "/")
	i := slices.IndexFunc(g.Actions, func(a Action) bool { return a.Name == s.Do })
	switch {
	case i < 0:
		return s, fmt.Errorf("there is no action %q", s.Do)
	case s.Fault != "" && !slices.Contains(g.Actions[i].Faults, s.Fault):
		return s, fmt.Errorf("the action has no fault %q: want one of %q", s.Fault, g.Actions[i].Faults)
	case len(fields)-1 > Choices:
		return s, fmt.Errorf("there are %d choices: want at most %d", len(fields)-1, Choices)
	}
	for i, field := range fields[1:] {
		c, err := strconv.ParseUint(field, 10, 8)
		if err != nil {
			return s, err
		}
		s.Choices[i] = uint8(c)
	}
	return s, nil
}
