//go:build linux || darwin

// Package diskspace says how much room a disk has.
package diskspace

import "syscall"

// In returns how many bytes of the disk of a folder are free for the process's user,
// and how many there are.
func In(folder string) (free, all uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, 0, false
	}
	size := uint64(s.Bsize)
	return s.Bavail * size, s.Blocks * size, true
}
