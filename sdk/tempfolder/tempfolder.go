// Package tempfolder makes temporary folders that do not stay behind: those of
// processes that were killed are removed by the next one that makes one of their kind.
package tempfolder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// staleAfter is the age from which on a folder that nobody has locked was left behind:
// its maker locks it at once.
const staleAfter = time.Minute

// Kind is a kind of folder.
type Kind struct {
	// Prefix begins the names of these folders, and of no others: those that were left
	// behind are found by it.
	Prefix string
	// Ours says of an entry whether such a folder may hold it. A folder with any other
	// one is not removed.
	Ours func(fs.DirEntry) bool
}

// Folder is a folder that is locked until it is closed, at most until the process ends.
type Folder struct {
	Path string

	lock *os.File
}

// Make makes a folder that only this user can enter. Empty is the system's folder for
// temporary files.
func (k Kind) Make(base string) (*Folder, error) {
	if base == "" {
		base = os.TempDir()
	}
	path, err := os.MkdirTemp(base, k.Prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	k.sweep(base, time.Now().Add(-staleAfter))
	return &Folder{Path: path, lock: lock}, nil
}

// Close removes the folder with all that it holds.
func (f *Folder) Close() error { return errors.Join(os.RemoveAll(f.Path), f.lock.Close()) }

// sweep removes folders that were made before a time and whose makers do not live any
// more. Another user's cannot be opened.
func (k Kind) sweep(base string, before time.Time) {
	if !foldersLock { // nobody can tell who lives
		return
	}
	found, _ := filepath.Glob(filepath.Join(base, k.Prefix+"*"))
	for _, path := range found {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || info.ModTime().After(before) || !k.holdsOurs(path) {
			continue
		}
		if left, err := lockFolder(path); err == nil {
			_ = os.RemoveAll(path)
			_ = left.Close()
		}
	}
}

func (k Kind) holdsOurs(path string) bool {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if !k.Ours(e) {
			return false
		}
	}
	return err == nil
}
