package driver

import (
	"context"
	"iter"
)

// A Backuper is a Driver that can copy its whole store while it works. `boardd backend
// backup` calls it. A driver need not implement it: most stores come with a way of
// their own.
type Backuper interface {
	// Backup yields the files of a copy, one after the other. The copy is the store as
	// it was at one moment after the call began, so it has every change that was
	// acknowledged before; to whoever opens it, it is a store that was put back. The
	// loop may be as slow as it likes: the store goes on meanwhile, and where it
	// cannot, the backup ends with Unavailable. Where another one is under way it is
	// Precondition.
	Backup(ctx context.Context) iter.Seq2[BackupPart, error]
}

// BackupPart is the beginning of a file, or what comes next of it: some hundred KiB at a
// time.
type BackupPart struct {
	Name string // where a file begins; [a-z0-9] and then up to 62 of [a-z0-9._-], none twice
	Size int64  // of the whole file, with its name
	Data []byte // stays as it is until the next part is asked for
}
