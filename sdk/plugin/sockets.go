package plugin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// maxSocketDir leaves room for a socket's name: a path has at most 107 bytes.
const maxSocketDir = 107 - len("/plugin") - len("4294967295")

// socketPrefix begins the names of the folders for sockets, and of no others: those
// that were left behind are found by it.
const socketPrefix = "boardd-driver-"

// staleAfter is the age from which on a folder for sockets that nobody has locked was
// left behind: its maker locks it at once.
const staleAfter = time.Minute

// socketDir makes a folder that only this user can enter, and locks it for as long as
// the file is open, at most until this process ends. A long name of the temporary
// folder does not fit into a socket's address. What processes left that were killed is
// taken away.
func socketDir() (dir string, mine *os.File, err error) {
	var failures []error
	for _, base := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		dir, err := os.MkdirTemp(base, socketPrefix)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if len(dir) > maxSocketDir {
			failures = append(failures, fmt.Errorf("the path %s is too long for a socket", dir), os.Remove(dir))
			continue
		}
		sweepSockets(base, time.Now().Add(-staleAfter))
		mine, err := lockFolder(dir)
		if err != nil {
			return "", nil, errors.Join(fmt.Errorf("the folder for the driver's socket: %w", err), os.Remove(dir))
		}
		return dir, mine, nil
	}
	return "", nil, fmt.Errorf("no folder for the driver's socket: %w", errors.Join(failures...))
}

// sweepSockets takes away folders for sockets that were made before a time and whose
// makers do not live any more. Another user's cannot be opened, and one that holds
// anything but sockets is none of ours.
func sweepSockets(base string, before time.Time) {
	if !foldersLock { // nobody can tell who lives
		return
	}
	found, _ := filepath.Glob(filepath.Join(base, socketPrefix+"*"))
	for _, dir := range found {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || info.ModTime().After(before) || !onlySockets(dir) {
			continue
		}
		if left, err := lockFolder(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = left.Close()
		}
	}
}

func onlySockets(dir string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type() != os.ModeSocket {
			return false
		}
	}
	return err == nil
}
