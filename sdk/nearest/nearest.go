// Package nearest finds the name that somebody probably meant.
package nearest

import "github.com/agext/levenshtein"

// Name returns the one of names that is most like got, or "" if none is alike
// enough to be worth suggesting.
func Name(got string, names []string) string {
	best, score := "", 0.6 // below this a suggestion confuses more than it helps
	for _, name := range names {
		if s := levenshtein.Similarity(got, name, nil); s > score {
			best, score = name, s
		}
	}
	return best
}

// Hint returns ` (did you mean "x"?)` for the nearest name, or "".
func Hint(got string, names []string) string {
	if n := Name(got, names); n != "" {
		return ` (did you mean "` + n + `"?)`
	}
	return ""
}
