package testserver

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestBuiltHere: a program is taken as it is only while it is the one that this process
// built.
func TestBuiltHere(t *testing.T) {
	t.Parallel()
	path, other := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "other")
	write := func(path, text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	is := func(want bool, when string) {
		t.Helper()
		if got := builtHere(path); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	now := time.Now()
	write(path, "one", now)
	is(false, "one that somebody else built")
	remember(t, path)
	is(true, "the one that was built")
	write(path, "two", now.Add(time.Second))
	is(false, "written again")
	remember(t, path)
	write(other, "two", now.Add(time.Second))
	if err := os.Rename(other, path); err != nil {
		t.Fatal(err)
	}
	is(false, "replaced by one as large and as old")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	is(false, "gone")
}
