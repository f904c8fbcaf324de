package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// defaultPatience is how long a change of the file is kept waiting by a backup: the file
// has outgrown its map, which cannot be made anew as long as somebody reads an old state.
const defaultPatience = 5 * time.Second

// backupPart is how many bytes of the file are read at a time.
const backupPart = 256 << 10

// putBackEpoch in a mark says that its store is a backup: no store has come so far, so
// whoever opens it finds that changes are missing, and when the backup was made.
const putBackEpoch = math.MaxUint64

// A copying is a backup under way: a state of the file whose pages are not used again.
type copying struct {
	file  *os.File
	heads []byte // the file's first two pages
	size  int64
	mark  mark

	mu sync.Mutex
	tx *bbolt.Tx // nil: it was given up
}

// Backup yields the file as it is when everything in the journal has been written to it,
// and a mark that says that the store was put back.
func (s *Store) Backup(ctx context.Context) iter.Seq2[driver.BackupPart, error] {
	return func(yield func(driver.BackupPart, error) bool) {
		c, err := s.beginCopy(ctx)
		if err == nil {
			defer s.endCopy(c)
			var more bool
			if more, err = c.send(ctx, yield); !more {
				return
			}
		}
		if err != nil {
			yield(driver.BackupPart{}, err)
		}
	}
}

// beginCopy takes hold of the file's present state while the committer stands still.
func (s *Store) beginCopy(ctx context.Context) (*copying, error) {
	c := &copying{}
	var failed error
	err := s.committer.alone(ctx, func() error {
		failed = s.hold(c)
		return nil // nothing was changed
	})
	if err != nil && c.tx != nil {
		s.endCopy(c)
	}
	if err = errors.Join(err, failed); err != nil {
		return nil, unlessKnown(err)
	}
	return c, nil
}

// unlessKnown makes an error one that says that nothing was changed.
func unlessKnown(err error) error {
	if e, ok := errors.AsType[*job.Error](err); ok {
		return e
	}
	return unavailable(err)
}

func (s *Store) hold(c *copying) (err error) {
	if !s.copying.CompareAndSwap(nil, c) {
		return job.Errorf(job.Precondition, "another backup of this store is under way: wait for its end")
	}
	defer func() {
		if err != nil {
			s.endCopy(c)
		}
	}()
	if c.file, err = os.Open(s.folder.file()); err != nil {
		return err
	}
	tx, err := s.db.Begin(false)
	if err != nil {
		return err
	}
	c.tx, c.size, c.mark = tx, tx.Size(), s.marker.last
	c.mark.serial, c.mark.tail = 1, tail{putBackEpoch, uint64(s.clock.wall().Unix())}
	c.heads, err = headsOf(c.file, c.size)
	return err
}

// headsOf returns the first two pages of the file with its newer head in both, so that
// the older state, whose pages may be used again, is in none.
func headsOf(file io.ReaderAt, size int64) ([]byte, error) {
	m, _, err := readMeta(file, size)
	if err != nil {
		return nil, &job.Error{Kind: job.Corrupt, Message: "the head of the store cannot be read", Err: err}
	}
	page, newer := uint64(m.pageSize), m.txid%2 // bbolt writes a head to the page of its parity
	heads := make([]byte, 2*page)
	if _, err := file.ReadAt(heads, 0); err != nil {
		return nil, err
	}
	order, older := binary.NativeEndian, heads[(1-newer)*page:][:page]
	copy(older, heads[newer*page:][:page])
	body := older[pageHeader:]
	order.PutUint64(older, 1-newer)
	order.PutUint64(body[48:], m.txid-1)
	order.PutUint64(body[metaSize-8:], headSum(body))
	return heads, nil
}

// endCopy lets the pages be used again.
func (s *Store) endCopy(c *copying) {
	s.copying.CompareAndSwap(c, nil)
	c.giveWay()
	if c.file != nil {
		_ = c.file.Close() // which was only read
	}
}

// giveWay gives a backup up, so that the file can be changed. It may be called at any
// time.
func (c *copying) giveWay() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tx != nil {
		_ = c.tx.Rollback() // which only reads
		c.tx = nil
	}
}

func (c *copying) held() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tx != nil
}

// send yields the copy, and returns false when nobody wants more of it.
func (c *copying) send(ctx context.Context, yield func(driver.BackupPart, error) bool) (more bool, err error) {
	if !yield(driver.BackupPart{Name: dataFile, Size: c.size, Data: c.heads}, nil) {
		return false, nil
	}
	buffer := make([]byte, backupPart)
	for at := int64(len(c.heads)); at < c.size; {
		b := buffer[:min(backupPart, c.size-at)]
		if _, err := c.file.ReadAt(b, at); err != nil {
			return true, unavailable(err)
		}
		if err := ctx.Err(); err != nil {
			return true, &job.Error{Kind: job.Interrupted, Err: err}
		}
		if !c.held() { // only now is it sure that the pages were not used again before they were read
			return true, job.Errorf(job.Unavailable, "the backup was given up after %d of %d bytes: the store had to grow, and would have waited for it; begin again, with a higher rate", at, c.size)
		}
		if !yield(driver.BackupPart{Data: b}, nil) {
			return false, nil
		}
		at += int64(len(b))
	}
	mark := c.mark.append(make([]byte, 0, markSize))
	return yield(driver.BackupPart{Name: markFile, Size: int64(len(mark)), Data: mark}, nil), nil
}
