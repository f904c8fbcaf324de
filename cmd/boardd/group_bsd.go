//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the first of a process group.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
