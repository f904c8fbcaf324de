package plugin

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// examiner is a store that finds what a test wants.
type examiner struct {
	*store
	findings []driver.Finding
	err      error
}

func (e examiner) Examine(context.Context, string) iter.Seq2[driver.Finding, error] {
	return func(yield func(driver.Finding, error) bool) {
		for _, f := range e.findings {
			if !yield(f, nil) {
				return
			}
		}
		if e.err != nil {
			yield(driver.Finding{}, e.err)
		}
	}
}

// TestExamine has what a driver finds, and how it fails, arrive.
func TestExamine(t *testing.T) {
	t.Parallel()
	fine := driver.Finding{Code: "leaked-key", Severity: driver.Warning, Subject: "ns:1", Problem: "nobody needs it", Mend: "DEL ns:1"}
	for name, test := range map[string]struct {
		found []driver.Finding
		err   error
		want  []driver.Finding
		kind  job.Kind
	}{
		"nothing":          {},
		"findings":         {found: []driver.Finding{fine, fine}, want: []driver.Finding{fine, fine}},
		"then an error":    {found: []driver.Finding{fine}, err: job.Errorf(job.Corrupt, "it is broken"), want: []driver.Finding{fine}, kind: job.Corrupt},
		"no code":          {found: []driver.Finding{{Severity: driver.Note}}, kind: job.Unavailable},
		"no severity":      {found: []driver.Finding{{Code: "x"}}, kind: job.Unavailable},
		"another severity": {found: []driver.Finding{{Code: "x", Severity: driver.Problem + 1}}, kind: job.Unavailable},
		"steering text": {
			found: []driver.Finding{{Code: "x", Severity: driver.Note, Problem: "a\x1b[2Jb"}},
			want:  []driver.Finding{{Code: "x", Severity: driver.Note, Problem: "a?[2Jb"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(driver.Config{})
			program := programOf(s)
			program.Open = func(context.Context, driver.Config) (driver.Driver, error) {
				return examiner{s, test.found, test.err}, nil
			}
			d, err := Pipe(t.Context(), program, driver.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			got, err := collected(d.(driver.Examiner).Examine(t.Context(), "b"))
			if diff := cmp.Diff(test.want, got); diff != "" || job.KindOf(err) != test.kind {
				t.Errorf("found (-want +got):\n%s\nand then %v, want %v", diff, err, test.kind)
			}
		})
	}
}

// TestExamineNot has a driver that does not look at its boards.
func TestExamineNot(t *testing.T) {
	t.Parallel()
	if _, err := collected(piped(t, newStore(driver.Config{})).(driver.Examiner).Examine(t.Context(), "b")); job.KindOf(err) != job.Unsupported || !strings.Contains(err.Error(), "does not examine") {
		t.Errorf("got %v, want %v", err, job.Unsupported)
	}
}
