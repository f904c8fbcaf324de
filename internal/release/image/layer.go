package main

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// user is who runs boardd in the image, and its group: no user of the machine's.
const user = 65532

// accounts are the files that name it, for what shows names.
const (
	passwd = "root:x:0:0:root:/:/usr/sbin/nologin\nboardd:x:65532:65532:boardd:/var/lib/boardd:/usr/sbin/nologin\n"
	group  = "root:x:0:\nboardd:x:65532:\n"
)

//go:embed boardd.hcl
var config []byte

// entry is what lies at a path: a folder, a link, or a file.
type entry struct {
	mode  fs.FileMode
	owner int    // user and group
	link  string // where it leads
	text  []byte
	from  string // file with the text
}

// tree is what an image consists of, by paths without a slash in front. A folder that
// only holds what is named is root's, and left out here.
type tree map[string]entry

// newTree lays out the files of an unpacked release.
func newTree(unpacked string) (tree, error) {
	t := tree{
		"etc/passwd":                        {mode: 0o644, text: []byte(passwd)},
		"etc/group":                         {mode: 0o644, text: []byte(group)},
		"etc/boardd/boardd.hcl":             {mode: 0o644, text: config},
		"etc/ssl/certs/ca-certificates.crt": {mode: 0o644, text: roots()},
		"tmp":                               {mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"usr/bin/boardd":                    {mode: fs.ModeSymlink | 0o777, link: "../lib/boardd/boardd"},
		"usr/lib/boardd/boardd":             {mode: 0o755, from: filepath.Join(unpacked, "boardd")},
		"usr/share/doc/boardd/LICENSE":      {mode: 0o644, from: filepath.Join(unpacked, "LICENSE")},
		"usr/share/doc/boardd/CHANGELOG.md": {mode: 0o644, from: filepath.Join(unpacked, "CHANGELOG.md")},
		"var/lib/boardd":                    {mode: fs.ModeDir | 0o700, owner: user},
	}
	if err := t.copy(filepath.Join(unpacked, "plugins"), "usr/lib/boardd/plugins", 0o755); err != nil {
		return nil, err
	}
	return t, t.copy(filepath.Join(unpacked, "licenses"), "usr/share/doc/boardd/licenses", 0o644)
}

// copy adds the files of a folder.
func (t tree) copy(folder, to string, mode fs.FileMode) error {
	return filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, file)
		t[path.Join(to, filepath.ToSlash(name))] = entry{mode: mode, from: file}
		return err
	})
}

// layer writes the tree as the tar of a layer: sorted, each folder before what it holds,
// everything of one time.
func (t tree) layer(made time.Time) ([]byte, error) {
	all := maps.Clone(t)
	for name := range t {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = entry{mode: fs.ModeDir | 0o755}
			}
		}
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := all[name].write(w, name, made); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}

func (e entry) write(w *tar.Writer, name string, made time.Time) error {
	text := e.text
	if e.from != "" {
		var err error
		if text, err = os.ReadFile(e.from); err != nil {
			return err
		}
	}
	h := &tar.Header{Name: name, Mode: int64(e.mode.Perm()), Uid: e.owner, Gid: e.owner, ModTime: made, Format: tar.FormatPAX}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
	case e.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	default:
		h.Typeflag, h.Size = tar.TypeReg, int64(len(text))
	}
	if e.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	if err := w.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.Write(text)
	return err
}
