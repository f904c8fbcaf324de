package shorten_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/boardd/boardd/sdk/shorten"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{strings.Repeat("a", 64), strings.Repeat("a", 64)},
		{strings.Repeat("a", 65), strings.Repeat("a", 64) + "…"},
		{strings.Repeat("a", 63) + "é", strings.Repeat("a", 63) + "…"},
		{strings.Repeat("a", 62) + "€x", strings.Repeat("a", 62) + "…"},
		{strings.Repeat("a", 61) + "€", strings.Repeat("a", 61) + "€"},
		{"\xff", "\uFFFD"},
	} {
		if got := shorten.Text(c.text); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func FuzzTo(f *testing.F) {
	f.Add("aé€😀", 3)
	f.Fuzz(func(t *testing.T, text string, n int) {
		n &= 127
		got := shorten.To(text, n)
		if !strings.HasPrefix(text, got) || len(got) > n || utf8.ValidString(text) && (!utf8.ValidString(got) || len(got) < min(len(text), n)-3) {
			t.Errorf("%q cut to %d bytes: %q", text, n, got)
		}
		if !utf8.ValidString(shorten.Text(text)) {
			t.Errorf("%q", shorten.Text(text))
		}
	})
}
