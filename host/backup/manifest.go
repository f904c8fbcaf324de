// Package backup is what a backup of a store is made of: files, and a manifest with their
// checksums. It travels as a tar archive with the manifest at its end, and lies in a
// folder or in a file. What the files say, only their driver knows.
package backup

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Format is the format that this version writes, and the only one that it reads.
const Format = 1

// ManifestFile is the name of the manifest, the last file of a backup. No other file may
// be called so.
const ManifestFile = "manifest.json"

// MaxManifest is how many bytes a manifest may have.
const MaxManifest = 1 << 20

// Manifest says what a backup has.
type Manifest struct {
	Format  int       `json:"format"`
	Boardd  string    `json:"boardd"` // the version that made it
	Backend string    `json:"backend"`
	Driver  string    `json:"driver"`
	Begun   time.Time `json:"begun"` // what was acknowledged before is in it
	Files   []File    `json:"files"`
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

var fileName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// decode reads a manifest.
func decode(text []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", ManifestFile, err)
	}
	if m.Format != Format {
		return nil, fmt.Errorf("%s is of format %d: this boardd reads format %d", ManifestFile, m.Format, Format)
	}
	if len(m.Files) == 0 {
		return nil, fmt.Errorf("%s names no file", ManifestFile)
	}
	for _, f := range m.Files {
		if !fileName.MatchString(f.Name) || f.Name == ManifestFile {
			return nil, fmt.Errorf("%s names a file %.80q, which no backup has", ManifestFile, f.Name)
		}
	}
	return m, nil
}

// Bytes is how many bytes the files have together.
func (m *Manifest) Bytes() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}
