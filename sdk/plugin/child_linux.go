package plugin

import (
	"os"
	"os/exec"
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
