package plugin

import (
	"bytes"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// isolate gives the process a group of its own and ends it with its parent.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// runChecked makes cmd run the very file that was checked, even if another one
// has its name by now. A script works as well: its interpreter reads the file.
func runChecked(cmd *exec.Cmd, file *os.File) {
	cmd.ExtraFiles = []*os.File{file}
	cmd.Path = "/proc/self/fd/3"
}

// markName is the variable by which the descendants of a driver's process are found,
// whatever group or session they are in.
const markName = "BOARDD_DRIVER_MARK"

// mark returns what only this process and its descendants have in their environment.
func mark() string { return markName + "=" + rand.Text() }

// killMarked ends every process with a mark. One that starts others meanwhile is found
// with them when all are looked through again.
func killMarked(mark string) {
	for range maxSweeps {
		if !sweep([]byte(mark)) {
			return
		}
	}
}

// maxSweeps is how often all processes are looked through; a driver whose children
// multiply faster than they are killed is not to keep its host busy for ever.
const maxSweeps = 100

// sweep kills the processes with a mark that live, and reports whether there were any.
func sweep(mark []byte) (found bool) {
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return false
	}
	for _, path := range processes {
		text, err := os.ReadFile(path) // that of another user, or of a process that is gone, cannot be read
		if err != nil || !slices.ContainsFunc(bytes.Split(text, []byte{0}), func(v []byte) bool { return bytes.Equal(v, mark) }) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid > 1 && syscall.Kill(pid, syscall.SIGKILL) == nil {
			found = true
		}
	}
	return found
}
