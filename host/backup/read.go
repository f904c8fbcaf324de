package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/tempfolder"
)

// Archive is a backup as it is sent: a tar archive.
func Archive(r io.Reader) *Source {
	return &Source{each: func(visit func(string, io.Reader) error) error {
		for in := tar.NewReader(r); ; {
			h, err := in.Next()
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case errors.Is(err, io.ErrUnexpectedEOF):
				return errors.New("it was cut off between two files")
			case err != nil:
				return fmt.Errorf("it is no archive, or damaged: %w", err)
			case h.Typeflag != tar.TypeReg:
				return fmt.Errorf("%.80q is no file", h.Name)
			}
			if err := visit(h.Name, in); err != nil {
				return err
			}
		}
	}}
}

// Folder is a backup that was unpacked. What lies there besides is no part of it.
func Folder(path string) *Source {
	return &Source{each: func(visit func(string, io.Reader) error) error {
		text, err := os.ReadFile(filepath.Join(path, ManifestFile))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("it has no %s: it is no backup, or was not finished", ManifestFile)
		}
		if err != nil {
			return err
		}
		m, err := decode(text)
		if err != nil {
			return err
		}
		names := []string{}
		for _, f := range m.Files {
			names = append(names, f.Name)
		}
		for _, name := range append(names, ManifestFile) {
			if err := visitFile(path, name, visit); err != nil {
				return err
			}
		}
		return nil
	}}
}

func visitFile(folder, name string, visit func(string, io.Reader) error) error {
	f, err := os.Open(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is missing", name)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return visit(name, f)
}

// A Source is a backup that can be read once.
type Source struct {
	each func(visit func(name string, content io.Reader) error) error
}

// Check reads a backup and returns its manifest. Its error says which file is damaged,
// or that it was cut off.
func (s *Source) Check() (*Manifest, error) {
	return s.read(func(string) (io.WriteCloser, error) { return discard{}, nil })
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

// Unpack checks a backup and puts its files into a folder, with the manifest if asked
// to. There is no such folder before, or it is empty; it appears only when all of the
// backup is in it, sound and on the disk.
func (s *Source) Unpack(folder string, manifest bool) (*Manifest, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("the folder %s is not empty: move away what is in it", folder)
	}
	folder = filepath.Clean(folder)
	parent := filepath.Dir(folder)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	work, err := partialFolders(folder).Make(parent)
	if err != nil {
		return nil, err
	}
	defer func() { _ = work.Close() }() // which is not there any more where all went well
	partial := work.Path
	m, err := s.read(func(name string) (io.WriteCloser, error) {
		if name == ManifestFile && !manifest {
			return discard{}, nil
		}
		f, err := os.OpenFile(filepath.Join(partial, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		return synced{f}, err
	})
	if err == nil {
		err = durable.SyncFolder(partial)
	}
	if err == nil && entries != nil {
		err = os.Remove(folder) // which is empty
	}
	if err == nil {
		err = os.Rename(partial, folder)
	}
	if err == nil {
		err = durable.SyncFolder(parent)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// partialFolders are those of what is not whole yet. One that was killed leaves up to as much as
// the store has, which the next one for the folder takes away.
func partialFolders(folder string) tempfolder.Kind {
	return tempfolder.Kind{
		Prefix: "." + filepath.Base(folder) + ".partial-",
		Ours:   func(e fs.DirEntry) bool { return e.Type().IsRegular() && fileName.MatchString(e.Name()) },
	}
}

// synced is a file that is on the disk when it is closed.
type synced struct{ *os.File }

func (s synced) Close() error { return errors.Join(s.Sync(), s.File.Close()) }

// read goes through a backup, copies each file to where to says, and compares all with
// the manifest, which comes last.
func (s *Source) read(to func(name string) (io.WriteCloser, error)) (*Manifest, error) {
	var m *Manifest
	var found []File
	err := s.each(func(name string, content io.Reader) error {
		if m != nil {
			return fmt.Errorf("%.80q lies behind %s", name, ManifestFile)
		}
		if !fileName.MatchString(name) || slices.ContainsFunc(found, func(f File) bool { return f.Name == name }) {
			return fmt.Errorf("it has a file %.80q, which no backup has, or twice", name)
		}
		out, err := to(name)
		if err != nil {
			return err
		}
		if name == ManifestFile {
			m, err = readManifest(content, out)
			return err
		}
		f, err := readFile(name, content, out)
		found = append(found, f)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, fmt.Errorf("it ends without %s: it is no backup, or was cut off", ManifestFile)
	}
	return m, m.compare(found)
}

func readManifest(content io.Reader, out io.WriteCloser) (*Manifest, error) {
	text, err := io.ReadAll(io.LimitReader(content, MaxManifest+1))
	if err == nil && len(text) > MaxManifest {
		err = fmt.Errorf("it has more than %d bytes", MaxManifest)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", ManifestFile, cutOff(err, int64(len(text)))), out.Close())
	}
	_, err = out.Write(text)
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	return decode(text)
}

func readFile(name string, content io.Reader, out io.WriteCloser) (File, error) {
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, out), content)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, cutOff(err, n))
	}
	return File{Name: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}, errors.Join(err, out.Close())
}

func cutOff(err error, n int64) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it was cut off after %d bytes", n)
	}
	return err
}

// compare says what is wrong with files that should be those of the manifest.
func (m *Manifest) compare(found []File) error {
	var wrong []error
	for _, want := range m.Files {
		i := slices.IndexFunc(found, func(f File) bool { return f.Name == want.Name })
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Errorf("%s is missing", want.Name))
		case found[i].Size != want.Size:
			wrong = append(wrong, fmt.Errorf("%s has %d bytes, and the manifest says %d: it was cut off, or another one was put in its place", want.Name, found[i].Size, want.Size))
		case found[i].SHA256 != want.SHA256:
			wrong = append(wrong, fmt.Errorf("%s is damaged: its SHA-256 is %s, and the manifest says %.64q", want.Name, found[i].SHA256, want.SHA256))
		}
	}
	for _, f := range found {
		if !slices.ContainsFunc(m.Files, func(want File) bool { return want.Name == f.Name }) {
			wrong = append(wrong, fmt.Errorf("%s is not in the manifest", f.Name))
		}
	}
	return errors.Join(wrong...)
}
