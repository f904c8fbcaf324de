//go:build unix && !linux

package plugin

import (
	"os"
	"os/exec"
	"syscall"
)

// isolate gives the process a group of its own. It ends itself when its parent is
// gone.
func isolate(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// runChecked can do nothing here: between the check and the start somebody who may
// write to the program's folder may replace it.
func runChecked(*exec.Cmd, *os.File) {}
