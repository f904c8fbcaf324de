package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/boardd/boardd/host/audit"
)

// writeMany writes records until the log has had n files, and closes it.
func writeMany(t *testing.T, o audit.Options, n int) {
	t.Helper()
	l, err := audit.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("n", 256)
	long := audit.Record{Call: text, Tenant: text, Board: text, Name: text, CallerTenant: text, Caller: text, Remote: text, Request: text, Result: text}
	seen := map[string]bool{}
	for len(seen) < n {
		for range 1000 {
			if err := l.Note(long); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Append(long); err != nil {
			t.Fatal(err)
		}
		names, _ := filepath.Glob(filepath.Join(o.Folder, "*.audit"))
		for _, name := range names {
			seen[name] = true
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPrunedBySize: old files are removed, the log says so and is sound, also when it
// goes on; and what is removed by somebody else is found.
func TestPrunedBySize(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	o := options(t, folder)
	o.MaxBytes = 2 * audit.MaxSegment
	writeMany(t, o, 3)
	start, err := audit.First(folder)
	if err != nil || start.Sequence == 0 {
		t.Fatalf("the log begins with record %d, %v: nothing was pruned", start.Sequence+1, err)
	}
	findings, end := verify(t, folder)
	if len(findings) > 0 {
		t.Errorf("found %q in a log that was pruned", findings)
	}
	names, _ := filepath.Glob(filepath.Join(folder, "*.audit"))
	if n := len(names); n > 2 {
		t.Errorf("%d files stay, want at most 2", n)
	}
	fill(t, folder, 3)
	sound(t, folder, end.Sequence+3)
	if got := audit.CheckHead(start, end, audit.Chain{Sequence: 1, Hash: "x"}, func(uint64) string { return "" }); got != "" {
		t.Errorf("a head that was published before what was pruned: %s", got)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	if findings, _ := verify(t, folder); len(findings) == 0 {
		t.Error("a file was removed by somebody else, and nothing was found")
	}
}

// TestPrunedByAge: records past their time are gone the next time that a file is
// begun, and younger ones stay.
func TestPrunedByAge(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	fill(t, folder, 5)
	o := options(t, folder)
	o.Keep = time.Nanosecond // every write begins a file, and all before it are old
	for range 3 {
		l, err := audit.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if err := l.Append(record(i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if start, err := audit.First(folder); err != nil || start.Sequence < 5 {
		t.Errorf("the log begins after record %d, %v", start.Sequence, err)
	}
	if findings, _ := verify(t, folder); len(findings) > 0 {
		t.Errorf("found %q", findings)
	}
	if findings, _, err := audit.Verify(folder, nil); err != nil || len(findings) > 0 {
		t.Errorf("found %q, %v without the key", findings, err)
	}
	o.Keep = time.Hour
	before, _ := audit.First(folder)
	l, err := audit.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(record(1)); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if start, _ := audit.First(folder); start != before {
		t.Errorf("young records were pruned, up to %d", start.Sequence)
	}
}
