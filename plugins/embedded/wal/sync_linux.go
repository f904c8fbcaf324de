package wal

import (
	"os"

	"golang.org/x/sys/unix"
)

// SyncData waits until what was written to f is on the disk, and what is needed
// to read it.
func SyncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
