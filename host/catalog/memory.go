package catalog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/failpoint"
)

// Memory is what a server remembers of its catalog, in a file of changes that is
// written anew when most of it no longer matters. A change is in the file when it is
// published, and on the disk within a second. Its methods may be called from many
// goroutines at once.
type Memory struct {
	folder string // empty: in this process only
	logger *slog.Logger

	mu       sync.Mutex // held while the file is written and synced
	identity Identity
	docs     map[string]driver.Document // records, by name
	gone     map[string]uint64          // records that were deleted on purpose, with their last versions
	file     *os.File
	lines    int
	dirty    bool // something is not on the disk yet
}

// Limits of the memory.
const (
	maxGone    = 10_000 // deletions that are remembered
	spareLines = 1_000  // lines that no longer matter, beside as many as do, before the file is written anew
)

// note is one line of the file.
type note struct {
	Name     string    `json:"name,omitempty"`
	Version  uint64    `json:"version,omitempty"`
	Data     []byte    `json:"data,omitempty"`
	Deleted  bool      `json:"deleted,omitempty"`
	Lost     bool      `json:"lost,omitempty"` // an operator accepted that it is gone
	Identity *Identity `json:"identity,omitempty"`

	bad bool // it cannot be read
}

const memoryFile = "records.jsonl"

// newFiles are what the file is written anew in, to be renamed.
const newFiles = ".new-*"

// OpenMemory reads what was remembered in a folder, and goes on from it. Without a
// folder nothing outlives the process. A line that cannot be read is passed over. Where this
// process is not alone with the folder, it has a file of its own from now on, which is the one
// that the next process finds.
func OpenMemory(folder string, alone bool, logger *slog.Logger) (*Memory, error) {
	m := &Memory{folder: folder, logger: logger, docs: map[string]driver.Document{}, gone: map[string]uint64{}}
	if folder == "" {
		return m, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	whole, err := m.read()
	if err != nil {
		return nil, err
	}
	if alone {
		left, _ := filepath.Glob(filepath.Join(folder, newFiles)) // the pattern is right
		for _, path := range left {                               // by a process that was killed while it wrote
			_ = os.Remove(path) // or the next time
		}
	}
	if alone && whole && m.lines > 0 && !m.crowded() {
		if m.file, err = os.OpenFile(filepath.Join(folder, memoryFile), os.O_APPEND|os.O_WRONLY, 0); err == nil {
			m.dirty = true // the process before may not have had the time to sync it
			return m, nil
		}
	}
	return m, m.rewrite()
}

// ReadMemory is OpenMemory for one who only looks.
func ReadMemory(folder string, logger *slog.Logger) (*Memory, error) {
	m := &Memory{folder: folder, logger: logger, docs: map[string]driver.Document{}, gone: map[string]uint64{}}
	if folder == "" {
		return m, nil
	}
	_, err := m.read()
	m.folder = ""
	return m, err
}

// read takes the file over, and reports whether more lines may be added to it as it is.
func (m *Memory) read() (whole bool, err error) {
	data, err := os.ReadFile(filepath.Join(m.folder, memoryFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	bad := m.parse(data)
	if bad > 0 {
		m.logger.Warn("lines of what is remembered of the catalog cannot be read", "folder", m.folder, "lines", bad)
	}
	return bad == 0 && bytes.HasSuffix(data, []byte("\n")), nil
}

// parse takes over the lines of a file and returns how many cannot be read. The last
// one may have been cut off. Each processor reads a part of them.
func (m *Memory) parse(data []byte) (bad int) {
	parts := make([][]note, runtime.GOMAXPROCS(0))
	var reading sync.WaitGroup
	for i := range parts {
		size := len(data) / (len(parts) - i)
		if end := bytes.IndexByte(data[size:], '\n'); end >= 0 {
			size += end + 1
		} else {
			size = len(data)
		}
		part := data[:size]
		data = data[size:]
		reading.Go(func() { parts[i] = parseNotes(part) })
	}
	reading.Wait()
	for _, notes := range parts {
		for i := range notes {
			if notes[i].bad {
				bad++
				continue
			}
			m.lines++
			m.apply(&notes[i])
		}
	}
	return bad
}

func parseNotes(data []byte) (notes []note) {
	for line := range bytes.Lines(data) {
		var n note
		n.bad = json.Unmarshal(line, &n) != nil
		notes = append(notes, n)
	}
	return notes
}

func (m *Memory) apply(n *note) {
	switch {
	case n.Identity != nil:
		m.identity = *n.Identity
	case n.Lost:
		delete(m.docs, n.Name)
		delete(m.gone, n.Name)
	case n.Deleted:
		delete(m.docs, n.Name)
		m.gone[n.Name] = n.Version
	case isRecord(n.Name):
		m.docs[n.Name] = driver.Document{Name: n.Name, Version: n.Version, Data: n.Data}
		delete(m.gone, n.Name)
	}
}

// keep remembers a record as it is now, and returns it as it is remembered, so that it is in the
// process once.
func (m *Memory) keep(doc driver.Document) driver.Document {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.docs[doc.Name]; ok && old.Version == doc.Version && bytes.Equal(old.Data, doc.Data) {
		return old
	}
	m.write(note{Name: doc.Name, Version: doc.Version, Data: doc.Data})
	return doc
}

// forget remembers that a record was deleted on purpose.
func (m *Memory) forget(name string, version uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.write(note{Name: name, Version: version, Deleted: true})
}

// replace remembers what an operator accepted, and nothing else.
func (m *Memory) replace(i Identity, docs map[string]driver.Document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.write(note{Identity: &i})
	for name := range m.docs {
		if _, ok := docs[name]; !ok {
			m.write(note{Name: name, Lost: true})
		}
	}
	for name := range maps.Clone(m.gone) {
		m.write(note{Name: name, Lost: true})
	}
	for _, doc := range docs {
		if old, ok := m.docs[doc.Name]; !ok || old.Version != doc.Version || !bytes.Equal(old.Data, doc.Data) {
			m.write(note{Name: doc.Name, Version: doc.Version, Data: doc.Data})
		}
	}
}

// write takes a change over and appends it to the file. Without the file only a later
// loss would go unseen, so that nothing else ends with it. The caller holds m.mu.
func (m *Memory) write(n note) {
	m.apply(&n)
	for name := range m.gone {
		if len(m.gone) <= maxGone {
			break
		}
		delete(m.gone, name)
	}
	if m.folder == "" {
		return
	}
	m.lines++
	if m.file == nil || m.crowded() {
		m.complain(m.rewrite())
		return
	}
	line, err := json.Marshal(n)
	if err == nil {
		err = failpoint.Fail("catalog/memory/before-write")
	}
	if err == nil {
		_, err = m.file.Write(append(line, '\n'))
	}
	m.dirty = true
	m.complain(err)
}

// crowded reports whether most of the file no longer matters. The caller holds m.mu, or nobody
// else has m yet.
func (m *Memory) crowded() bool { return m.lines > 2*(len(m.docs)+len(m.gone))+spareLines }

func (m *Memory) complain(err error) {
	if err != nil {
		m.logger.Error("what is known of the catalog could not be kept", "folder", m.folder, "error", err)
	}
}

// rewrite writes the file anew: after a crash there is the old one or the new one. The
// caller holds m.mu, or nobody else has m yet.
func (m *Memory) rewrite() error {
	path := filepath.Join(m.folder, memoryFile)
	file, err := os.CreateTemp(m.folder, newFiles)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	lines := json.NewEncoder(out)
	if m.identity.ID != "" {
		err = lines.Encode(note{Identity: &m.identity})
	}
	for _, name := range slices.Sorted(maps.Keys(m.docs)) {
		doc := m.docs[name]
		err = errors.Join(err, lines.Encode(note{Name: name, Version: doc.Version, Data: doc.Data}))
	}
	for name, version := range m.gone {
		err = errors.Join(err, lines.Encode(note{Name: name, Version: version, Deleted: true}))
	}
	err = errors.Join(err, out.Flush(), file.Sync())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	if m.file != nil {
		_ = m.file.Close() // nobody reads it any more
	}
	m.file, m.lines, m.dirty = file, len(m.docs)+len(m.gone)+1, false
	return durable.SyncFolder(m.folder) // or what is added to the file would be lost with its name
}

// sync puts what was written on the disk.
func (m *Memory) sync() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil || !m.dirty {
		return
	}
	m.dirty = false
	m.complain(m.file.Sync())
}

// Close puts what was written on the disk, and ends. Nothing is remembered after it.
func (m *Memory) Close() error {
	m.sync()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.folder = ""
	if m.file == nil {
		return nil
	}
	err := m.file.Close()
	m.file = nil
	return err
}

// records returns what is remembered. Nobody changes the documents.
func (m *Memory) records() (Identity, map[string]driver.Document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.identity, maps.Clone(m.docs)
}

// of returns which catalog is remembered.
func (m *Memory) of() Identity {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.identity
}

// record returns one record, if it is remembered, and up to which version it was
// deleted, if it was.
func (m *Memory) record(name string) (doc driver.Document, known bool, gone uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	doc, known = m.docs[name]
	return doc, known, m.gone[name]
}
