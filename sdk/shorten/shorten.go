// Package shorten shortens text without breaking a character.
package shorten

import (
	"strings"
	"unicode/utf8"
)

// MaxText is how many bytes Text leaves of a text.
const MaxText = 64

// To returns at most the first n bytes of a text: fewer, where the n-th stands within
// a character.
func To(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Text shortens what a stranger wrote for a message, and makes it UTF-8. What is left
// out is marked.
func Text(text string) string {
	short := To(text, MaxText)
	if short != text {
		short += "…"
	}
	return strings.ToValidUTF8(short, "\uFFFD")
}
