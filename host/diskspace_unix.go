//go:build linux || darwin

package host

import "syscall"

// spaceIn returns how many bytes of the disk of a folder are free for boardd's user,
// and how many there are.
func spaceIn(folder string) (free, all uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, 0, false
	}
	size := uint64(s.Bsize)
	return s.Bavail * size, s.Blocks * size, true
}
