//go:build !unix

package tempfolder

import "os"

const foldersLock = false

// lockFolder opens a folder and locks nothing.
func lockFolder(path string) (*os.File, error) { return os.Open(path) }
