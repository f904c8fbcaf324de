// Package filelock keeps two processes from writing to the same files. The lock is
// the kernel's: it ends with the process that holds it, however that ends.
package filelock

import (
	"errors"
	"os"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Open opens the file, which is made if it is not there, and locks it until it is
// closed. ErrHeld is returned at once where another process has locked it. Where the
// standard library offers no locks, on other systems than Unix, nothing is locked.
func Open(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
