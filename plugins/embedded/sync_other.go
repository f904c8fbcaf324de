//go:build !linux

package embedded

import "os"

// syncData waits until what was written to f is on the disk.
func syncData(f *os.File) error { return f.Sync() }
