package memory

import (
	"os"
	"syscall"
)

// syncData waits until what was written is on the disk. The file has had its size
// since it was made, so the disk need not be told of anything else.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
