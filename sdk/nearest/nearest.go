// Package nearest finds the name that somebody probably meant.
package nearest

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/agext/levenshtein"
)

// Name returns the one of names that is most like got, or "" if none is alike
// enough to be worth suggesting.
func Name(got string, names []string) string {
	best, score := "", 0.6 // below this a suggestion confuses more than it helps
	for _, name := range names {
		if s := alike(got, name); s > score {
			best, score = name, s
		}
	}
	return best
}

// alike returns how much of two words is the same, from 0 to 1. Two neighbours
// that changed places are one mistake; the distance of Levenshtein counts two.
func alike(got, name string) float64 {
	best := levenshtein.Similarity(got, name, nil)
	letters := []rune(got)
	if len(letters) > maxSwap {
		return best
	}
	for i := 1; i < len(letters); i++ {
		letters[i-1], letters[i] = letters[i], letters[i-1]
		one := 1 / float64(max(len(letters), utf8.RuneCountInString(name))) // the price of the swap itself
		best = max(best, levenshtein.Similarity(string(letters), name, nil)-one)
		letters[i-1], letters[i] = letters[i], letters[i-1]
	}
	return best
}

// maxSwap is the longest word, in letters, of which every swap is tried.
const maxSwap = 32

// Hint returns ` (did you mean "x"?)` for the nearest name, or "".
func Hint(got string, names []string) string {
	if n := Name(got, names); n != "" {
		return ` (did you mean "` + n + `"?)`
	}
	return ""
}

// HintOr is Hint, and where nothing is near ": want one of" all names.
func HintOr(got string, names []string) string {
	if hint := Hint(got, names); hint != "" {
		return hint
	}
	return ": want one of " + strings.Join(names, ", ")
}

// mostNames is how many names an error tells of.
const mostNames = 20

// Among is Hint with the names there are behind it, as the end of a sentence that says that
// there is none of the name got.
func Among(got string, names []string) string {
	return Hint(got, names) + "; there are " + List(names)
}

// List joins names for a sentence, the first of them where they are many.
func List(names []string) string {
	switch more := len(names) - mostNames; {
	case len(names) == 0:
		return "none"
	case more > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), more)
	}
	return strings.Join(names, ", ")
}
