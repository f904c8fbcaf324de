package config

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

// TestUnreadable: who cannot read a file is told whom to let read it. Root, as which tests
// may run, can read everything.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	if got, want := plainError(&fs.PathError{Op: "open", Path: "key", Err: syscall.EACCES}), "permission denied; the user "+reader()+" has to be able to read it"; got != want || strings.Contains(got, "user  ") {
		t.Errorf("%q, want %q", got, want)
	}
	if got := plainError(&fs.PathError{Op: "open", Path: "key", Err: syscall.ENOENT}); got != "no such file or directory" {
		t.Errorf("%q", got)
	}
}
