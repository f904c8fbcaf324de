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
