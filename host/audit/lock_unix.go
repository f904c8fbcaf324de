//go:build unix

package audit

import (
	"errors"
	"os"
	"syscall"
)

// lock keeps other processes from writing to a log. It ends with the file.
func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errInUse
	}
	return err
}
