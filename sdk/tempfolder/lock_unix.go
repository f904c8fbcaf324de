//go:build unix

package tempfolder

import (
	"errors"
	"os"
	"syscall"
)

const foldersLock = true

// lockFolder opens and locks a folder, or fails at once if a process has it locked.
func lockFolder(path string) (*os.File, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}
