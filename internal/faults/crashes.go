package faults

import (
	"slices"
	"strings"
)

// What a program of Go prints when it ends by a mistake of its own, and what boardd and its
// drivers log of a call that panicked.
var crashWords = []string{"panic: ", "fatal error: ", "panicked", " panic="}

// memoryWords are in what a program prints that ends since it gets no memory.
var memoryWords = []string{"out of memory", "cannot allocate memory"}

// crashes returns what a server's log has of crashes, its own and those of its drivers. That
// processes get no memory is no crash: it is done to them.
func crashes(log string) (all []string) {
	has := func(line string, words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) })
	}
	for line := range strings.Lines(log) {
		if has(line, crashWords) && !has(line, memoryWords) {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}
