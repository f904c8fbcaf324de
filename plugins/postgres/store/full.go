package store

import (
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/job"
)

// fullFor is how long a disk counts as full after it was, while nothing shows that it has room.
const fullFor = time.Minute

// A fullDisk tells whether the server's disk is full, by what became of changes. A small one may
// fit into pages that are there while large ones are refused: so what shows that there is room
// again is a change as large as the largest that was refused.
type fullDisk struct {
	mu   sync.Mutex
	at   time.Time // when a change was refused last; zero: the disk is not full
	size int       // the most that one of them would have written
}

// note notes what became of a change of so many bytes.
func (f *fullDisk) note(err error, size int, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err == nil && size >= f.size:
		f.at, f.size = time.Time{}, 0
	case job.KindOf(err) == job.QuotaExceeded:
		if now.Sub(f.at) >= fullFor {
			f.size = 0
		}
		f.at, f.size = now, max(f.size, size)
	}
}

// is reports whether the disk counts as full.
func (f *fullDisk) is(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.at.IsZero() && now.Sub(f.at) < fullFor
}

// bytesOf is about how much a change writes: of what its statements have, that which can be large.
func bytesOf(queue *pgx.Batch) (n int) {
	for _, q := range queue.QueuedQueries {
		for _, arg := range q.Arguments {
			switch a := arg.(type) {
			case []byte:
				n += len(a)
			case [][]byte:
				for i := range a {
					n += len(a[i])
				}
			}
		}
	}
	return n
}
