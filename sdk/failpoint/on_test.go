//go:build failpoints

package failpoint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain is also the process that goes through a point three times.
func TestMain(m *testing.M) {
	if os.Getenv("FAILPOINT_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	for range 3 {
		Hit("some/where")
		if err := Fail("else/where"); err != nil {
			_, _ = os.Stdout.WriteString(err.Error() + "\n")
		}
		_, _ = os.Stdout.WriteString("past\n")
	}
}

// run goes through the points with files in the folder, and returns what was printed.
func run(t *testing.T, folder string, files map[string]string) (string, error) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), "FAILPOINT_TEST_CHILD=1", Variable+"="+folder)
	out, err := child.CombinedOutput()
	return string(out), err
}

func exists(folder, name string) bool {
	_, err := os.Stat(filepath.Join(folder, name))
	return err == nil
}

func TestActions(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if out, err := run(t, folder, nil); err != nil || out != "past\npast\npast\n" || !exists(folder, "some.where.crossed") {
		t.Errorf("nothing is armed: %v\n%s", err, out)
	}
	out, err := run(t, folder, map[string]string{"some.where": "kill once hit=2"})
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || out != "past\n" {
		t.Errorf("killed the second time: %v\n%s", err, out)
	}
	if exists(folder, "some.where") || !exists(folder, "some.where.fired") {
		t.Error("it is still armed")
	}
	if out, err := run(t, folder, nil); err != nil {
		t.Errorf("once, and again: %v\n%s", err, out)
	}
	for text, want := range map[string]string{
		"exit hit=3":    "past\npast\n",
		"panic":         "panic: at the point some/where",
		"error":         "the point some/where cannot fail",
		"burn":          "there is no action",
		"sleep=1ns":     "past\npast\npast\n",
		"cross":         "past\npast\npast\n",
		"kill seed=1 x": `there is no "x"`,
	} {
		if out, _ := run(t, t.TempDir(), map[string]string{"some.where": text}); !strings.HasPrefix(out, want) && !strings.Contains(out, "panic") || !strings.Contains(out, want) {
			t.Errorf("%s: %s\nwant %q", text, out, want)
		}
	}
	if out, err := run(t, t.TempDir(), map[string]string{"else.where": "error=EIO hit=2"}); err != nil || out != "past\nEIO, as the point else/where was told to\npast\npast\n" {
		t.Errorf("an error: %v\n%s", err, out)
	}
}

// TestChildren checks that a child process is told of the folder.
func TestChildren(t *testing.T) {
	was := folder
	defer func() { folder = was }()
	folder = ""
	if got := Environment(); got != nil {
		t.Errorf("without a folder: %v", got)
	}
	folder = "/x"
	if got := Environment(); len(got) != 1 || got[0] != "BOARDD_FAILPOINTS=/x" {
		t.Errorf("with one: %v", got)
	}
}
