package host

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// memories keeps what drivers want remembered of each board, so that they find
// out whether a store lost what it had acknowledged. It is kept in the data
// folder and, for the life of the process, in memory.
type memories struct {
	folder string // empty: in memory only

	mu    sync.Mutex
	known map[string][]byte
}

// maxMemory is the size of one board's memory, in bytes.
const maxMemory = 64 << 10

// path returns where a board's memory lies. Backends and boards have names of
// [a-z0-9._-] that begin with a letter or digit; a board's key has one slash.
func (m *memories) path(backend, board string) string {
	return filepath.Join(m.folder, "memory", backend, strings.ReplaceAll(board, "/", "@"))
}

// get returns a board's memory, or nil.
func (m *memories) get(backend, board string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := m.path(backend, board)
	if data, ok := m.known[path]; ok || m.folder == "" {
		return data
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return data
}

// put keeps a board's memory: after a crash there is the old one or the new one.
func (m *memories) put(backend, board string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	path := m.path(backend, board)
	old, known := m.known[path]
	if known && bytes.Equal(old, data) || data == nil {
		return nil
	}
	if len(data) > maxMemory {
		return errors.New("the driver wants more remembered than a host keeps")
	}
	if m.known == nil {
		m.known = map[string][]byte{}
	}
	m.known[path] = data
	if m.folder == "" {
		return nil
	}
	return writeFile(path, data)
}

func writeFile(path string, data []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".new-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		if gone := os.Remove(file.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes a rename within the folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
