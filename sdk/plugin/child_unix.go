//go:build unix

package plugin

import "syscall"

// killGroup ends every process of a group. The process that it is named after may
// be gone; its number is not given to another while the group has members.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}
