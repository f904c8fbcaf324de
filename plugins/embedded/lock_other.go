//go:build !unix

package embedded

import "os"

// tryLock leaves the locking to bbolt, which locks its own file.
func tryLock(*os.File) (bool, error) { return true, nil }
