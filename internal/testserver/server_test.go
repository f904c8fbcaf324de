package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// failing is a test that may fail without the one that looks at it.
type failing struct {
	testing.TB

	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestEndedServer checks that nobody waits for a server that has ended, and that
// its last words are shown.
func TestEndedServer(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho it cannot be\nexit 7\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	f := &failing{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Start(f, program, "")
	}()
	<-done
	for _, want := range []string{"the server ended before it was ready", "exit status 7", "it cannot be"} {
		if !strings.Contains(f.said, want) {
			t.Errorf("got %q, want %q in it", f.said, want)
		}
	}
}
