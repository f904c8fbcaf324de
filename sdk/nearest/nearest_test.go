package nearest_test

import (
	"testing"

	"github.com/boardd/boardd/sdk/nearest"
)

func TestHint(t *testing.T) {
	t.Parallel()
	commands := []string{"post", "list", "get", "claim", "consume", "abandon", "watch", "trash"}
	for _, tc := range []struct {
		got   string
		names []string
		want  string
	}{
		{"pots", commands, "post"},
		{"psot", commands, "post"},
		{"opst", commands, "post"},
		{"lsit", commands, "list"},
		{"gte", commands, "get"},
		{"clami", commands, "claim"},
		{"consum", commands, "consume"},
		{"wacth", commands, "watch"},
		{"post", commands, "post"},
		{"adress", []string{"address", "path"}, "address"},
		{"größe", []string{"größen", "x"}, "größen"},
		{"rgöße", []string{"größe", "x"}, "größe"},
		{"xyz", commands, ""},
		{"", commands, ""},
		{"post", nil, ""},
		{"ab", []string{"cd"}, ""},
	} {
		if name := nearest.Name(tc.got, tc.names); name != tc.want {
			t.Errorf("%q: got %q, want %q", tc.got, name, tc.want)
		}
		hint := ""
		if tc.want != "" {
			hint = ` (did you mean "` + tc.want + `"?)`
		}
		if got := nearest.Hint(tc.got, tc.names); got != hint {
			t.Errorf("%q: got %q, want %q", tc.got, got, hint)
		}
	}
}

// An error that says what there is names the nearest one first, and not hundreds.
func TestAmong(t *testing.T) {
	t.Parallel()
	many := make([]string, 23)
	for i := range many {
		many[i] = string(rune('a' + i))
	}
	for _, tc := range []struct {
		got   string
		names []string
		want  string
	}{
		{"lokal", []string{"local", "pg"}, ` (did you mean "local"?); there are local, pg`},
		{"x", []string{"local"}, "; there are local"},
		{"x", nil, "; there are none"},
		{"1", many, "; there are a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t and 3 more"},
	} {
		if got := nearest.Among(tc.got, tc.names); got != tc.want {
			t.Errorf("%q of %q: got %q, want %q", tc.got, tc.names, got, tc.want)
		}
	}
}
