package embedded

import (
	"fmt"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/job"
)

// replay writes what the journal holds over the file into the file, and returns how
// far the store goes with it.
func (s *Store) replay(j *wal.Log) (has tail, err error) {
	if s.reached.whole {
		return tail{s.reached.epoch, wholeEpoch}, nil
	}
	corrupt := func(epoch uint64, err error) error {
		return &job.Error{Kind: job.Corrupt, Err: err, Message: fmt.Sprintf(
			"%s does not hold what %s needs: put back all files of the folder from one backup", j.Path(epoch), s.folder.file())}
	}
	j.Salt = s.reached.salt
	l, last := newMemtable(), s.reached.epoch+1
	first, err := j.Read(last, s.into(l))
	if err == nil && first.Records == 0 {
		err = fmt.Errorf("it has no epoch %d", last)
	}
	if err != nil {
		return has, corrupt(last, err)
	}
	has = tail{last, first.Records}
	next, err := j.Read(last+1, s.into(l))
	if err == nil && next.Records > 0 && next.Before != first.Records {
		return has, corrupt(last, fmt.Errorf("epoch %d had %d records, and %d are left", last, next.Before, first.Records))
	}
	if err != nil {
		return has, corrupt(last+1, err)
	}
	if next.Records > 0 {
		last++
		has = tail{last, next.Records}
	}
	if first.Torn || next.Torn {
		s.logger.Warn("the last change in the journal is not whole: it was cut off while it was written, or the disk lost something", "path", j.Path(last))
	}
	if err := s.checkpoint(l, reached{epoch: last, whole: true}); err != nil {
		return has, unavailable(fmt.Errorf("%s: what the journal holds cannot be written to it: %w", s.folder.file(), err))
	}
	return has, nil
}

// into puts the entries of records into a memtable.
func (s *Store) into(l *memtable) func(body []byte) error {
	return func(body []byte) error {
		return eachEntry(body, func(e *recordEntry) error {
			p := newTableID(0, e.bucket)
			if e.board != "" {
				p = newTableID(s.numberOf(e.board), e.bucket)
			}
			key := append(append(make([]byte, 0, len(p)+len(e.key)), p[:]...), e.key...)
			l.Set(cell{key: key, value: e.value, gone: e.gone})
			return nil
		})
	}
}
