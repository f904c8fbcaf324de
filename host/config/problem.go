package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/boardd/boardd/sdk/job"
)

// Place is a position in a configuration file. The zero Place is nowhere.
type Place struct {
	File   string
	Line   int // from 1; 0: the file as a whole
	Column int // from 1, in characters
}

// String returns the place as FILE:LINE,COLUMN.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d,%d", p.File, p.Line, p.Column)
}

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Place Place
	Text  string // never holds the value of a secret
}

// String returns the problem on one line.
func (p Problem) String() string {
	if p.Place == (Place{}) {
		return p.Text
	}
	return p.Place.String() + ": " + p.Text
}

// Problems is everything that is wrong with a configuration, in the order of
// the files. As an error it has the kind job.Invalid.
type Problems []Problem

// Error returns the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// Unwrap makes errors.Is find the kind.
func (p Problems) Unwrap() error { return job.Invalid }

// sort orders problems as a reader meets them and drops repetitions. Files keep
// the order in which they were given.
func (p Problems) sort(files []string) Problems {
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(slices.Index(files, a.Place.File), slices.Index(files, b.Place.File)),
			cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Column, b.Place.Column),
		)
	})
	return slices.Compact(p)
}

// places remembers where things stand, by kind, name and path.
type places map[string]Place

func placeKey(kind, name string, path []string) string {
	return strings.Join(append([]string{kind, name}, path...), "\x00")
}

// Locate returns the place of a setting as FILE:LINE,COLUMN, or "" for what
// stands in no file. The kind is that of its block: "board" and "token" (with
// names as TENANT/NAME), "backend", "tenant", "tls", or "" for the settings
// outside of all blocks. The path leads from the block to the setting, so that
// a driver's setting begins with "config". For a path that stands nowhere it is
// the place of what would contain it.
func (c *Config) Locate(kind, name string, path ...string) string {
	return c.PlaceOf(kind, name, path...).String()
}

// PlaceOf is Locate for those who make a Problem of it.
func (c *Config) PlaceOf(kind, name string, path ...string) Place {
	for n := len(path); n >= 0; n-- {
		if p, ok := c.places[placeKey(kind, name, path[:n])]; ok {
			return p
		}
	}
	return Place{}
}
