package testserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end a process when the test's own process ends,
// however it does.
func dieWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
