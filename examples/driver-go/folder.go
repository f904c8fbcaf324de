package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/memdriver"
)

// A folder holds a file for each board. A board's name may be longer than a
// file's and have anything in it, so the file is named by its digest; the name is
// in the file.
type folder string

const suffix = ".board.json"

func (f folder) path(board string) string {
	digest := sha256.Sum256([]byte(board))
	return filepath.Join(string(f), hex.EncodeToString(digest[:])+suffix)
}

// load reads all files into an empty driver. The folder belongs to this process
// until what it returns is closed.
func (f folder) load(memory driver.Driver) (io.Closer, error) {
	if err := os.MkdirAll(string(f), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.Create(filepath.Join(string(f), "lock"))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: another process uses it: %w", f, err), lock.Close())
	}
	paths, err := filepath.Glob(filepath.Join(string(f), "*"+suffix))
	for _, path := range paths {
		if err == nil {
			err = loadFile(memory, path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

func loadFile(memory driver.Driver, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := memdriver.Load(memory, bufio.NewReader(file)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// save replaces a board's file. At every moment, also after a power loss, there
// is either the whole old one or the whole new one.
func (f folder) save(memory driver.Driver, board string) error {
	path := f.path(board)
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	err = errors.Join(memdriver.Save(memory, board, out), out.Flush(), file.Sync(), file.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return f.sync()
}

func (f folder) remove(board string) error {
	if err := os.Remove(f.path(board)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return f.sync()
}

// sync makes names durable, as a file's own Sync does its content.
func (f folder) sync() error {
	dir, err := os.Open(string(f))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
