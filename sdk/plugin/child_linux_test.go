package plugin

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// TestKillsWhatLeftItsGroup has drivers start a process in a session of its own: it ends
// with them, however they end, and nobody else does.
func TestKillsWhatLeftItsGroup(t *testing.T) {
	t.Parallel()
	start := func() (*Process, int) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "child")
		c := command(t, "parent")
		c.Env = append(c.Env, childFile+"="+file)
		p, err := Start(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if !lives(pid) {
			t.Fatal("what the driver started does not live")
		}
		return p, pid
	}
	stranger := exec.CommandContext(t.Context(), "sleep", "3600")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = stranger.Process.Kill()
		_ = stranger.Wait()
	}()
	other, otherChild := start()
	defer other.Kill()
	for name, end := range map[string]func(*Process){
		"stopped": (*Process).Kill,
		"aborted": (*Process).Abort,
		"crashed": func(p *Process) { _ = syscall.Kill(p.PID(), syscall.SIGKILL) },
	} {
		p, child := start()
		end(p)
		<-p.Exited()
		waitFor(t, func() bool { return !lives(child) })
		p.Abort()
		if !lives(otherChild) || !lives(stranger.Process.Pid) || !lives(other.PID()) {
			t.Fatalf("%s: it took others with it", name)
		}
	}
}

// lives reports whether a process runs; one that nobody has waited for yet does not.
func lives(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, rest, ok := bytes.Cut(text, []byte(") "))
	return err == nil && ok && rest[0] != 'Z' && rest[0] != 'X'
}
