package testserver

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Freeze stops a process with SIGSTOP, and waits until none of its threads runs any
// more: on a busy machine they go on for a while after the signal was sent.
func Freeze(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	runs := func(thread string) bool {
		text, err := os.ReadFile(thread) // "ID (NAME) STATE ..."
		_, state, _ := strings.Cut(string(text), ") ")
		return err == nil && state != "" && !strings.ContainsAny(state[:1], "TZX") // stopped, or has ended
	}
	Eventually(t, "the process stands still", func() bool {
		threads, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat")) // none where there is no /proc
		return !slices.ContainsFunc(threads, runs)
	})
}
