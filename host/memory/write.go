package memory

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/boardd/boardd/host/filelock"
	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/failpoint"
)

// run brings what was put to the disk, until the memory is closed.
func (m *Memory) run() {
	timer := time.NewTimer(syncEvery)
	defer timer.Stop()
	failed := false
	for {
		select {
		case <-m.closing:
			return
		case <-m.work:
		}
		timer.Reset(syncEvery) // others may come along
		select {
		case <-m.closing:
			return
		case <-timer.C:
		}
		err := m.flush()
		if err != nil {
			m.wake() // it is tried again
		}
		if held := errors.Is(err, filelock.ErrHeld); err != nil && !failed && !held {
			m.logger.Error("what is to be remembered of the stores cannot be written; it is tried again", "folder", m.folder, "error", err)
		}
		failed = err != nil
	}
}

// flush brings everything to the disk.
func (m *Memory) flush() error {
	m.settling.Lock()
	defer m.settling.Unlock()
	m.mu.Lock()
	file, late, dirty := m.file, m.late, m.dirty
	m.dirty = false
	m.mu.Unlock()
	switch {
	case file == nil:
		return m.occupy()
	case late:
		return m.rewrite()
	case !dirty:
		return nil
	}
	err := failpoint.Fail("memory/before-sync")
	if err == nil {
		err = syncData(file)
	}
	if err != nil { // the kernel may have forgotten what it could not write
		m.mu.Lock()
		m.late = true
		m.mu.Unlock()
	}
	return err
}

// rewrite writes what is remembered to a new file, which takes the place of the old
// one as soon as it is on the disk. What is put meanwhile goes to both.
func (m *Memory) rewrite() (err error) {
	m.mu.Lock()
	known := maps.Clone(m.known)
	m.tail = [][]byte{}
	m.mu.Unlock()
	file, at, size, err := m.write(known)
	if err == nil {
		err = m.exchange(file, at, size)
	} else {
		m.mu.Lock()
		m.tail = nil
		m.mu.Unlock()
	}
	return err
}

// write writes a new file, with room behind what is remembered, and waits until it is
// on the disk.
func (m *Memory) write(known map[string][]byte) (file *os.File, at, size int64, err error) {
	text := []byte(magic)
	for _, key := range keys(known) {
		text = appendRecord(text, key, known[key], false)
	}
	at = int64(len(text))
	size = 2*at + room
	if file, err = os.OpenFile(filepath.Join(m.folder, newFile), os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600); err != nil {
		return nil, 0, 0, err
	}
	if _, err = file.Write(append(text, bytes.Repeat([]byte{0}, int(size-at))...)); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, 0, 0, errors.Join(err, file.Close())
	}
	return file, at, size, nil
}

// exchange has a new file take the place of the old one.
func (m *Memory) exchange(file *os.File, at, size int64) error {
	m.mu.Lock()
	tail := m.tail
	m.tail = nil
	var err error
	for _, record := range tail {
		if err == nil {
			_, err = file.WriteAt(record, at)
		}
		at += int64(len(record))
	}
	if err == nil {
		failpoint.Hit("memory/before-rename")
		err = os.Rename(file.Name(), filepath.Join(m.folder, logFile))
		failpoint.Hit("memory/after-rename")
	}
	if err != nil {
		m.late = true
		m.mu.Unlock()
		return errors.Join(err, file.Close())
	}
	old := m.file
	m.file, m.at, m.size = file, at, size
	m.dirty, m.late = false, at > size
	m.mu.Unlock()
	if len(tail) > 0 {
		err = syncData(file)
	}
	if err == nil {
		err = durable.SyncFolder(m.folder)
	}
	if old != nil {
		err = errors.Join(err, old.Close())
	}
	if err != nil {
		m.mu.Lock()
		m.late = true
		m.mu.Unlock()
	}
	return err
}
