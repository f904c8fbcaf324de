//go:build !unix

package audit

import "os"

// lock does nothing here: nothing that the standard library offers keeps other
// processes away.
func lock(*os.File) error { return nil }
