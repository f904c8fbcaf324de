//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Locks says whether files are locked on this system.
const Locks = true

func lock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
