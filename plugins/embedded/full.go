package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/diskspace"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// DiskReserve is how many bytes of the disk are left to changes that make no board
// larger, or an eighth of the disk if that is less: posts, logs and larger documents
// are refused while less is free.
const DiskReserve = 16 << 20

// What a change may add to a board on a full disk: to a job's status, and in a document,
// which are as large as what servers and workers say of themselves.
const (
	maxFullGrowth   = 256
	maxFullDocument = 1 << 10
)

// journalSpare is how much of the journal's file is left to such changes where it
// cannot be made longer.
const journalSpare = 256 << 10

// fullFor is how long a store is full after a write that found no room.
const fullFor = time.Second

const (
	noRoom    = "the disk has no room left for more jobs, logs or documents: claims and endings go on and make room"
	noRoomYet = "the disk has no room for this change, which was not made: free some of it"
)

var errNoRoom = &job.Error{Kind: job.QuotaExceeded, Message: noRoom}

// fullness is when a write last found no room, on the boot clock.
type fullness struct{ at atomic.Int64 }

// note takes that a write found no room.
func (f *fullness) note(now time.Duration) { f.at.Store(max(1, int64(now))) }

// fresh reports whether that was a moment ago.
func (f *fullness) fresh(now time.Duration) bool {
	at := f.at.Load()
	return at != 0 && now-time.Duration(at) < fullFor
}

// full reports whether what makes a board larger is refused.
func (s *Store) full() bool {
	if s.fullness.fresh(s.clock.boot()) {
		return true
	}
	free, all, ok := diskspace.In(s.folder.path)
	return ok && free < min(DiskReserve, all/8)
}

// Measure is Health, and gives the size of the store's files. Its limit is what they can grow
// to as long as nobody else takes of what the disk has left.
func (s *Store) Measure(ctx context.Context) (u driver.Usage, err error) {
	err = s.Health(ctx)
	if err != nil && !errors.Is(err, errNoRoom) {
		return u, err
	}
	for _, name := range []string{dataFile, wal.Files[0], wal.Files[1]} {
		if info, err := os.Stat(filepath.Join(s.folder.path, name)); err == nil { // the second journal is made when it is needed
			u.Used += info.Size()
		}
	}
	if free, all, ok := diskspace.In(s.folder.path); ok {
		u.Limit = u.Used + max(0, int64(free)-int64(min(DiskReserve, all/8)))
	}
	return u, err
}

var _ driver.Measurer = (*Store)(nil)

// crowded is Store.full, once a transaction.
func (t *txn) crowded() bool {
	if !t.looked {
		t.looked, t.noRoom = true, t.store.full()
	}
	t.grew = t.grew || !t.noRoom
	return t.noRoom
}

// grows reports whether an op makes a board larger.
func grows(op *driver.Op, status int) bool {
	switch op.Kind {
	case driver.Post:
		return true
	case driver.Update:
		for i := range op.Attach {
			if !op.Attach[i].Delete {
				return true
			}
		}
		return op.Status != nil && len(*op.Status) > status+maxFullGrowth
	default:
		return false
	}
}

// isNoRoom reports whether a commit found no room and changed nothing.
func isNoRoom(err error) bool { return errors.Is(err, wal.ErrFull) }
