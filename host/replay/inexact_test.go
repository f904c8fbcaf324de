package replay_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/host/replay"
)

// A report says what keeps it from being exactly what happened, and nothing where
// nothing does.
func TestInexact(t *testing.T) {
	t.Parallel()
	fair := ordered(t, "fair-share", map[string]any{"by": "label:team"})
	for name, test := range map[string]struct {
		lines iter.Seq2[recording.Line, error]
		rules board.Rules
		from  time.Time
		want  string // "" is nothing
	}{
		"nothing":                  {lines: script(t, "0 begin\n1 post a\n2 post b\n3 claim a by\n4 claim b by\n5 gone a\n"), rules: fair},
		"one call for two jobs":    {lines: decidedAt(t, 3, "0 begin\n1 post a\n2 post b\n4 claim a by\n4 claim b by\n"), rules: fair},
		"two calls at a time":      {lines: decidedAt(t, 3, "0 begin\n1 post a\n2 post b\n4 claim a by\n4 claim b by gpu=1\n"), rules: fair, want: "1 claims were decided at the same time as others"},
		"granted in another order": {lines: decidedAt(t, 3, "0 begin\n1 post a\n2 post b\n2.5 post c\n3.5 claim c by\n4 claim a by\n", 3.2), rules: fair, want: "1 claims were decided at the same time as others"},
		"claimed and ended":        {lines: script(t, "0 begin\n1 post a\n2 gone before\n3 claim a by\n"), rules: fair, want: "1 jobs were claimed before"},
		"claimed and given back":   {lines: script(t, "0 begin\n1 post before attempt=1\n3 claim before by\n"), rules: fair, want: "1 jobs were claimed before"},
		"claimed before from":      {lines: script(t, "0 begin\n1 post a\n2 post b\n3 claim a by\n9 claim b by\n"), rules: fair, from: at(5), want: "1 jobs were claimed before"},
		"claimed without counts":   {lines: script(t, "0 begin\n1 post a\n2 gone before\n3 claim a by\n")},
		"as many keys as are seen": {lines: script(t, teams(1024)), rules: fair},
		"one more":                 {lines: script(t, teams(1025)), rules: fair, want: "1 claims had jobs of more than 1024 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := replay.Run(t.Context(), test.lines, test.rules, board.Rules{}, replay.Options{From: test.from})
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(r.NotRecorded(), "\n")
			if !strings.HasPrefix(said, test.want) || test.want == "" && said != "" || strings.Contains(said, "\n") {
				t.Errorf("it says %q, want %q", said, test.want)
			}
		})
	}
}

// teams is a recording with a job of each of so many teams, and a claim.
func teams(n int) string {
	var text strings.Builder
	fmt.Fprintln(&text, "0 begin")
	for i := range n {
		fmt.Fprintf(&text, "1 post j%d team=t%d\n", i, i)
	}
	fmt.Fprintln(&text, "2 claim j0 by")
	return text.String()
}

// decidedAt is a script whose claims were decided at a second; the first ones at others.
func decidedAt(t *testing.T, second float64, text string, first ...float64) iter.Seq2[recording.Line, error] {
	t.Helper()
	lines := script(t, text)
	return func(yield func(recording.Line, error) bool) {
		rest := first
		for l, err := range lines {
			if l.Event == recording.Claim {
				l.Decided = at(second)
				if len(rest) > 0 {
					l.Decided, rest = at(rest[0]), rest[1:]
				}
			}
			if !yield(l, err) {
				return
			}
		}
	}
}
