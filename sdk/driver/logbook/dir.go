package logbook

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/boardd/boardd/sdk/job"
)

// Dir is the tree of TaskFlow's `dir` persistence: its path. Nothing outside of
// it is ever read, wherever links in it lead.
type Dir string

// metadata is the file of an item, in its folder.
const metadata = "metadata"

// Path names an item.
func (d Dir) Path(folder, uuid string) string {
	return filepath.Join(string(d), folder, uuid, metadata)
}

// Items reads files.
func (d Dir) Items(ctx context.Context, folder string, uuids []string) ([][]byte, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	items := make([][]byte, len(uuids))
	for i, uuid := range uuids {
		if ctx.Err() != nil {
			return nil, &job.Error{Kind: job.Interrupted, Err: context.Cause(ctx)}
		}
		name := filepath.Join(folder, uuid, metadata)
		if items[i], err = readFile(root, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, d.unreadable(err)
		}
	}
	return items, nil
}

func (d Dir) open() (*os.Root, error) {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return nil, d.unreadable(err)
	}
	return root, nil
}

func (d Dir) unreadable(err error) error {
	return &job.Error{Kind: job.Precondition, Message: "TaskFlow's books in " + string(d) + " cannot be read", Err: err}
}

// readFile reads a file whose parts are not links, and a little more than
// MaxBytes of it at most. An empty one is not nil.
func readFile(root *os.Root, name string) ([]byte, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is no file")} // it may be a pipe, on which a reader waits
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// Links returns the names of the links in an item's folder. Where they lead does
// not matter: TaskFlow, too, goes by their names.
func (d Dir) Links(_ context.Context, folder, uuid string) ([]string, error) {
	root, err := d.open()
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // it was only read
	f, err := root.Open(filepath.Join(folder, uuid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.unreadable(err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, d.unreadable(err)
	}
	var names []string
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
