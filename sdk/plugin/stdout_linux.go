package plugin

import (
	"os"
	"syscall"
)

// takeStdout returns standard output for the handshake and lets everything else
// that writes to it, C code included, write to standard error.
func takeStdout() *os.File {
	handshake, err := syscall.Dup(syscall.Stdout)
	if err != nil {
		return os.Stdout
	}
	syscall.CloseOnExec(handshake)
	if err := syscall.Dup3(syscall.Stderr, syscall.Stdout, 0); err != nil {
		_ = syscall.Close(handshake)
		return os.Stdout
	}
	os.Stdout = os.Stderr
	return os.NewFile(uintptr(handshake), "handshake")
}
