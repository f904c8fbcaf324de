package embedded

import (
	"errors"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/failpoint"
)

// rotate begins a new epoch when the present one is long enough, and has the old
// one written to the file. Only the committer calls it. Its error means that
// nothing more can be taken now.
func (c *committer) rotate() error {
	s := c.store
	_ = c.checkpoints.collect(false) // a full disk is seen below
	size := s.keep.journalBytes
	if !c.begun || c.journal.At < size {
		return nil
	}
	if c.checkpoints.busy && c.journal.At < 4*size {
		return nil
	}
	if err := c.checkpoints.collect(true); err != nil && !errors.Is(err, wal.ErrFull) {
		return err
	}
	if s.over.frozen != nil { // only this goroutine sets it; the disk was full
		if s.clock.boot()-c.checkpoints.failed > retryPause {
			c.checkpoints.start(s.over.frozen, reached{epoch: c.journal.Epoch - 1, salt: c.journal.Salt})
		}
		if c.journal.At < 4*size {
			return nil
		}
		return wal.ErrFull
	}
	if err := c.journal.Begin(c.journal.Epoch+1, c.journal.Number); err != nil {
		if errors.Is(err, wal.ErrFull) && c.journal.At < 4*size {
			return nil
		}
		return err
	}
	failpoint.Hit("embedded/rotate/begun")
	s.gate.Lock()
	s.over = overlay{recent: newMemtable(), frozen: s.over.recent}
	s.gate.Unlock()
	c.draft = s.over.recent.Copy()
	c.checkpoints.start(s.over.frozen, reached{epoch: c.journal.Epoch - 1, salt: c.journal.Salt})
	return nil
}

// begin begins the journal with the first change since the file was whole.
func (c *committer) begin() error {
	if c.begun {
		return nil
	}
	s := c.store
	c.journal.Renew()
	if err := c.journal.Begin(s.reached.epoch+1, 0); err != nil {
		return err
	}
	if err := s.checkpoint(newMemtable(), reached{epoch: s.reached.epoch, salt: c.journal.Salt}); err != nil {
		return err
	}
	c.begun = true
	return nil
}

// flush writes everything to the file, so that the journal is not needed any
// more.
func (c *committer) flush() error {
	s := c.store
	if err := c.checkpoints.collect(true); err != nil && !errors.Is(err, wal.ErrFull) {
		return err
	}
	if frozen := s.over.frozen; frozen != nil {
		if err := c.checkpoints.write(frozen, reached{epoch: c.journal.Epoch - 1, salt: c.journal.Salt}); err != nil {
			return err
		}
	}
	if !c.begun {
		return nil
	}
	if err := s.checkpoint(s.over.recent, reached{epoch: c.journal.Epoch, whole: true}); err != nil {
		return err
	}
	c.begun = false
	s.gate.Lock()
	s.over = overlay{recent: newMemtable()}
	s.gate.Unlock()
	c.draft = s.over.recent.Copy()
	return nil
}
