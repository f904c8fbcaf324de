//go:build !linux

package wal

import "os"

// SyncData waits until what was written to f is on the disk.
func SyncData(f *os.File) error { return f.Sync() }
