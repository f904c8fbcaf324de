package simulation

import (
	"fmt"
	"maps"
	"slices"
)

// A Pair is two things that met: an action and a fault, or two actions that
// overlapped.
type Pair struct{ One, Other string }

// Coverage counts how often each pair was seen.
type Coverage map[Pair]int

// Add adds the counts of another.
func (c Coverage) Add(other Coverage) {
	for pair, n := range other {
		c[pair] += n
	}
}

// Unseen returns those of the pairs that were never seen.
func (c Coverage) Unseen(pairs []Pair) []Pair {
	return slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return c[p] > 0 })
}

// Rarest returns the n pairs that were seen least, the rarest first.
func (c Coverage) Rarest(n int) []Pair {
	pairs := slices.SortedFunc(maps.Keys(c), func(a, b Pair) int {
		if c[a] != c[b] {
			return c[a] - c[b]
		}
		return compare(a, b)
	})
	return pairs[:min(n, len(pairs))]
}

func compare(a, b Pair) int {
	switch {
	case a == b:
		return 0
	case a.One < b.One || a.One == b.One && a.Other < b.Other:
		return -1
	}
	return 1
}

// A Recorder takes down what happens while a program runs.
type Recorder struct {
	sum     uint64
	seen    Coverage
	telling bool
	told    []string
}

// Note adds numbers to the history: two runs of one program are the same if they
// noted the same numbers.
func (r *Recorder) Note(values ...uint64) {
	for _, v := range values {
		r.sum = (r.sum ^ v) * 0x100000001b3
		r.sum ^= r.sum >> 29
	}
}

// NoteBytes is Note for bytes.
func (r *Recorder) NoteBytes(b []byte) {
	for _, c := range b {
		r.sum = (r.sum ^ uint64(c)) * 0x100000001b3
	}
}

// See counts a pair.
func (r *Recorder) See(one, other string) { r.seen[Pair{one, other}]++ }

// Telling reports whether Tell keeps anything.
func (r *Recorder) Telling() bool { return r.telling }

// Tell says for people what the present step does. It costs nothing unless somebody
// listens.
func (r *Recorder) Tell(format string, args ...any) {
	if r.telling {
		r.told = append(r.told, fmt.Sprintf(format, args...))
	}
}

func sumOf(text string) uint64 {
	var r Recorder
	r.NoteBytes([]byte(text))
	return r.sum
}
