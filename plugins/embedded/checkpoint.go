package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/failpoint"
)

type commitFunc func(*bbolt.Tx) error

// reached is how far the file goes: it holds the journal up to and with an epoch.
// Where it is whole, nothing is missing in it, and the journal is not looked at;
// otherwise the next epoch has to be there.
type reached struct {
	epoch uint64
	whole bool
	salt  [16]byte // of the journal since the file was last whole; random
}

func (r reached) append(b []byte) []byte {
	b = binary.AppendUvarint(b, r.epoch)
	whole := byte(0)
	if r.whole {
		whole = 1
	}
	return append(append(b, whole), r.salt[:]...)
}

func (r *reached) decode(body []byte) error {
	in := reader{b: body}
	*r = reached{epoch: in.uvarint(), whole: in.byte() == 1, salt: in.array16()}
	return in.done()
}

// checkpoint writes a memtable into the file, and how far the file goes with it.
func (s *Store) checkpoint(l *memtable, r reached) error {
	format := max(s.format, formatKeyless)
	format = max(format, formatFor(l))
	err := s.update(func(tx *bbolt.Tx) (bool, error) {
		head := tx.Bucket(storeBucket)
		if s.format != format {
			if err := putHead(head, formatKey, binary.AppendUvarint(nil, format)); err != nil {
				return false, err
			}
		}
		if err := putHead(head, journalKey, r.append(nil)); err != nil {
			return false, err
		}
		return true, s.writeMemtable(tx, l)
	})
	failpoint.Hit("embedded/checkpoint/after-commit")
	if err == nil {
		s.reached, s.format = r, format
	}
	return err
}

// formatFor is the oldest format that a file with a memtable's changes can have.
func formatFor(l *memtable) uint64 {
	format := uint64(formatKeyless)
	l.Scan(func(c cell) bool {
		switch c.place().bucket() {
		case inKeys:
			format = max(format, formatKeys)
		case inGroups:
			format = formatVersion
		}
		return format < formatVersion
	})
	return format
}

// update makes one transaction of the file. Only one goroutine may be in it at a
// time, and it is the only one that writes to the file. An error that isNoRoom reports
// leaves everything as it was.
func (s *Store) update(fn func(*bbolt.Tx) (wrote bool, err error)) error {
	if c := s.copying.Load(); c != nil {
		defer time.AfterFunc(s.patience, c.giveWay).Stop()
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return err
	}
	before := tx.ID() - 1
	if wrote, err := fn(tx); err != nil || !wrote {
		return errors.Join(err, tx.Rollback())
	}
	failpoint.Hit("embedded/checkpoint/before-commit")
	if err := s.commit(tx); err != nil {
		if s.undone(err, before) {
			return fmt.Errorf("%w: %w", wal.ErrFull, err)
		}
		return err
	}
	return nil
}

// undone reports whether a commit that failed left nothing behind: the disk was
// full before its head was written. After a failed fsync nobody can tell, since
// the kernel may have forgotten what it could not write.
func (s *Store) undone(err error, before int) bool {
	var path *fs.PathError
	switch {
	case strings.HasPrefix(err.Error(), "file resize error"): // bbolt keeps no more than the text
	case errors.As(err, &path) && path.Op == "write" && wal.IsFull(err):
	default:
		return false
	}
	tx, err := s.db.Begin(false)
	if err != nil {
		return false
	}
	now := tx.ID()
	return tx.Rollback() == nil && now == before
}

// writeMemtable puts a memtable into a transaction of the file.
func (s *Store) writeMemtable(tx *bbolt.Tx, l *memtable) (err error) {
	var at tableID
	var bucket *bbolt.Bucket
	l.Scan(func(c cell) bool {
		if p := c.place(); bucket == nil || p != at {
			if bucket, err = s.bucketFor(tx, p); err != nil {
				return false
			}
			at = p
		}
		switch {
		case at.bucket() == inSequences:
			err = s.setSequence(tx, newTableID(at.board(), int(c.name()[0])), sequenceOf(c.value))
		case c.gone:
			err = bucket.Delete(c.name())
		default:
			err = bucket.Put(c.name(), c.value)
		}
		return err == nil
	})
	return err
}

// bucketFor returns the bucket of a place, which is made if it is not there.
func (s *Store) bucketFor(tx *bbolt.Tx, p tableID) (*bbolt.Bucket, error) {
	n := p.bucket()
	if p.board() == 0 {
		return tx.Bucket(storeBuckets[min(n, len(storeBuckets)-1)]), nil
	}
	root, err := tx.CreateBucketIfNotExists(bucketNameOf(s.nameOf(p.board())))
	if err != nil || bucketNames[n] == nil {
		return root, err
	}
	bucket, err := root.CreateBucketIfNotExists(bucketNames[n])
	if err == nil {
		bucket.FillPercent = appendFill
	}
	return bucket, err
}

func (s *Store) setSequence(tx *bbolt.Tx, p tableID, n uint64) error {
	bucket, err := s.bucketFor(tx, p)
	if err != nil {
		return err
	}
	return bucket.SetSequence(n)
}

// A checkpointer writes what the committer has frozen into the file, beside the
// committer.
type checkpointer struct {
	store  *Store
	done   chan error // has room for one
	busy   bool       // an answer will come on done
	failed time.Duration
}

// retryPause is the time between two tries to write to a full disk.
const retryPause = time.Second

// start begins to write the frozen memtable; collect must have returned its answer before
// the next start.
func (c *checkpointer) start(l *memtable, r reached) {
	c.busy = true
	go func() {
		debug.SetPanicOnFault(true)
		c.done <- c.write(l, r)
	}()
}

func (c *checkpointer) write(l *memtable, r reached) (err error) {
	s := c.store
	defer func() {
		if p := recover(); p != nil {
			err = s.fatal(fmt.Errorf("a page of the store cannot be used: %v\n%s", p, debug.Stack()))
		}
	}()
	if err := s.checkpoint(l, r); err != nil {
		if errors.Is(err, wal.ErrFull) {
			s.fullness.note(s.clock.boot())
			s.logger.Warn("the disk has no room for what the journal holds; it is tried again", "path", s.folder.path, "error", err)
			return err
		}
		return s.fatal(err)
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	s.over.frozen = nil
	return nil
}

// collect takes the answer of what start began, if there is one, or waits for it.
func (c *checkpointer) collect(wait bool) error {
	if !c.busy {
		return nil
	}
	var err error
	if wait {
		err = <-c.done
	} else {
		select {
		case err = <-c.done:
		default:
			return nil
		}
	}
	c.busy = false
	if err != nil {
		c.failed = c.store.clock.boot()
	}
	return err
}
