// Package memory keeps, in the server's own data folder, what the server must know
// of its stores even if the stores have forgotten it: how far each board had come
// when a change was acknowledged, how many things a catalog held. It is compared
// with the store when that is opened, and so a store that was put back from a backup
// or lost its last changes is noticed. It lies in a folder of its own, never in that
// of a backend, so that who puts back a backend's folder does not put it back too.
// Whoever puts back the whole data folder does, and that can't be noticed.
//
// The promise of Put: when it returns nil, the value is there for whoever opens the
// folder next, however this process ends, kill -9 included. A loss of power takes at
// most what was put in the last second (SyncWithin), and nothing of what was put
// before Close. For each key there is then one of the values that were put for it,
// whole. Put costs one write of the value's size into a file that has its room
// already; it never waits for the disk.
//
// Values are replaced as a whole, and all of them are held in RAM.
package memory

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/boardd/boardd/host/filelock"
	"github.com/boardd/boardd/sdk/failpoint"
)

// Limits of a memory.
const (
	MaxKey     = 512         // bytes of a key
	MaxValue   = 64 << 10    // bytes of a value
	SyncWithin = time.Second // from Put until its value survives a loss of power
)

// The files in the folder.
const (
	logFile  = "log"      // records, see record.go
	newFile  = "log.new"  // one that is being written, and is not whole
	lockFile = "log.lock" // locked while a process writes
)

// syncEvery is how long a value waits for others before the disk is waited for.
const syncEvery = SyncWithin / 2

// room is how large the file is made beyond twice what is remembered.
const room = 4 << 20

// Memory is a memory that is open. Its methods may be called from many goroutines
// at once.
type Memory struct {
	folder string // empty: in RAM only
	logger *slog.Logger

	work    chan struct{} // something was put, or the file is to be written anew
	closing chan struct{}
	once    sync.Once
	done    sync.WaitGroup

	settling sync.Mutex // one at a time brings to the disk what was put

	mu    sync.Mutex // of what follows
	lock  *os.File   // nil: in RAM only, or another process has the folder
	known map[string][]byte
	file  *os.File        // nil: in RAM only, or another process has the folder
	at    int64           // where the next record goes
	size  int64           // the file has room up to here
	dirty bool            // since the last sync
	late  bool            // the file is to be written anew
	tail  [][]byte        // the records since the file began to be written anew; nil: it is not
	own   map[string]bool // the keys that were put while another process has the folder; nil: none has it
	text  []byte          // of the last record, whose room the next one has
}

// Open opens the memory in a folder, which it makes if it is not there. An empty
// name keeps it in RAM alone. What cannot be read in the file is left out, and
// logged: older values of its keys hold, or none.
//
// Where another process has the folder open (the server before this one, that has not
// ended yet), what is put is kept in RAM until that process has let go of it. Close
// must be called.
func Open(folder string, logger *slog.Logger) (*Memory, error) {
	m := &Memory{
		folder: folder, logger: logger, known: map[string][]byte{},
		work: make(chan struct{}, 1), closing: make(chan struct{}),
	}
	if folder == "" {
		return m, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if err := m.occupy(); err != nil && !errors.Is(err, filelock.ErrHeld) {
		return nil, err
	} else if err != nil {
		logger.Warn("another server has this data folder: what is to be remembered is kept in RAM until that one has ended", "folder", folder)
		m.own = map[string]bool{}
		if m.known, err = m.read(); err != nil {
			return nil, err
		}
	}
	m.done.Go(m.run)
	return m, nil
}

// Read returns what is remembered in a folder, whoever has it open, and changes
// nothing.
func Read(folder string) (map[string][]byte, error) {
	if folder == "" {
		return map[string][]byte{}, nil
	}
	known, _, err := readLog(filepath.Join(folder, logFile))
	return known, err
}

// occupy takes the folder for this process, reads it, and begins to write. What was
// put before holds.
func (m *Memory) occupy() error {
	lock, err := filelock.Open(filepath.Join(m.folder, lockFile))
	if err != nil {
		return err
	}
	known, err := m.read()
	if err == nil {
		m.adopt(known)
		err = m.rewrite()
	}
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lock, m.own = lock, nil
	return nil
}

// Alone reports whether this process has the folder to itself. Then it does until Close, and
// all that have put something there before have ended, however they did.
func (m *Memory) Alone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return filelock.Locks && m.lock != nil
}

// adopt takes over what the file holds, but for what was put here meanwhile, which stays noted
// until the file has it.
func (m *Memory) adopt(known map[string][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.own {
		if value, ok := m.known[key]; ok {
			known[key] = value
		} else {
			delete(known, key)
		}
	}
	m.known = known
}

// read returns what the file holds, and logs what it does not hold any more.
func (m *Memory) read() (map[string][]byte, error) {
	known, unread, err := readLog(filepath.Join(m.folder, logFile))
	if err == nil && unread > 0 {
		m.logger.Warn("a part of what the server remembers of its stores cannot be read: after a loss of power that is the last second, otherwise the disk lost it; "+
			"a store that was put back may go unnoticed once", "folder", m.folder, "bytes", unread)
	}
	return known, err
}

// Get returns the last value that was put for a key, or nil. It is not to be changed.
func (m *Memory) Get(key string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[key]
}

// Put remembers a value for a key, instead of what was remembered before. An error
// says that the file could not be written; the value is kept in RAM all the same, and
// is written when that succeeds again.
func (m *Memory) Put(key string, value []byte) error {
	if len(key) == 0 || len(key) > MaxKey || len(value) > MaxValue {
		return fmt.Errorf("a key of %d and a value of %d bytes: want 1 to %d and at most %d", len(key), len(value), MaxKey, MaxValue)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.known[key]; ok && bytes.Equal(old, value) {
		return nil
	}
	m.known[key] = bytes.Clone(value)
	m.text = appendRecord(m.text[:0], key, value, false)
	return m.append(key)
}

// Forget remembers nothing for a key any more.
func (m *Memory) Forget(key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[key]; !ok {
		return nil
	}
	delete(m.known, key)
	m.text = appendRecord(m.text[:0], key, nil, true)
	return m.append(key)
}

// append writes m.text, which is about key, behind what the file has. The caller has mu.
func (m *Memory) append(key string) error {
	if m.folder == "" {
		return nil
	}
	defer m.wake()
	if m.own != nil {
		m.own[key] = true
	}
	if m.tail != nil {
		m.tail = append(m.tail, bytes.Clone(m.text))
	}
	if m.file == nil {
		return nil
	}
	err := failpoint.Fail("memory/before-write")
	if err == nil {
		_, err = m.file.WriteAt(m.text, m.at)
	}
	if err != nil {
		m.late = true // what the file has there is not known
		return fmt.Errorf("what is to be remembered could not be written: %w", err)
	}
	m.at += int64(len(m.text))
	m.dirty, m.late = true, m.late || m.at > m.size
	return nil
}

// wake has run look at what there is to do.
func (m *Memory) wake() {
	select {
	case m.work <- struct{}{}:
	default:
	}
}

// Close waits until everything is on the disk and lets go of the folder.
func (m *Memory) Close() error {
	var err error
	m.once.Do(func() {
		close(m.closing)
		m.done.Wait()
		if m.lock == nil {
			return
		}
		err = errors.Join(m.flush(), m.file.Close(), m.lock.Close())
	})
	return err
}

// keys returns all keys, sorted.
func keys(known map[string][]byte) []string { return slices.Sorted(maps.Keys(known)) }
