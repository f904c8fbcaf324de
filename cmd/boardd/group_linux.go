package main

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the first of a process group, which the kernel ends
// with this program even when that is killed.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
