package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/boardd/boardd/sdk/driver"
)

// The modules of policies are remembered as files, each named by its digest.

func (m *Memory) moduleFolder() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.folder == "" {
		return ""
	}
	return filepath.Join(m.folder, "modules")
}

// module returns a module that is remembered.
func (m *Memory) module(digest string) ([]byte, bool) {
	folder := m.moduleFolder()
	if folder == "" || filepath.Base(digest) != digest {
		return nil, false
	}
	data, err := os.ReadFile(filepath.Join(folder, digest))
	if err != nil {
		return nil, false
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:]) == digest
}

// keepModules remembers the modules that the policies name, and forgets the others.
func (c *Catalog) keepModules(ctx context.Context) {
	folder := c.memory.moduleFolder()
	if folder == "" {
		return
	}
	digests := c.View().Digests()
	have, _ := os.ReadDir(folder) // none, before the first
	for _, file := range have {
		if !digests[file.Name()] {
			c.memory.complain(os.Remove(filepath.Join(folder, file.Name())))
		}
		delete(digests, file.Name())
	}
	for digest := range digests {
		asking, cancel := context.WithTimeout(ctx, probeWithin)
		doc, err := c.docs.Get(asking, driver.Space{Name: moduleSpace}, digest)
		cancel()
		if err == nil {
			c.memory.complain(writeModule(folder, digest, doc.Data))
		}
	}
}

// writeModule writes a file that is whole or not there. It is not synced: what a crash
// leaves of it is recognized by its digest, and the store has the module too.
func writeModule(folder, digest string, data []byte) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	path := filepath.Join(folder, digest)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
