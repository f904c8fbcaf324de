// Package durable writes files that are there after a crash, whole or not at all.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/boardd/boardd/sdk/failpoint"
)

// WriteFile writes a file that only this user can read, and makes its folder where that
// is missing: after a crash there is the old file or the new one.
func WriteFile(path string, data []byte) error {
	return write(path, data, os.Rename)
}

// NewFile writes a file as WriteFile does, and fails with fs.ErrExist if there is one.
func NewFile(path string, data []byte) error {
	return write(path, data, os.Link)
}

// write writes a file under another name, and then gives it its own.
func write(path string, data []byte, name func(from, to string) error) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(folder, ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, failpoint.Fail("durable/before-sync"))
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		failpoint.Hit("durable/before-name")
		err = name(file.Name(), path)
		failpoint.Hit("durable/after-name")
	}
	if gone := os.Remove(file.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) { // it has another name by then
		err = errors.Join(err, gone)
	}
	if err != nil {
		return err
	}
	return SyncFolder(folder)
}

// SyncFolder waits until the names in a folder are on the disk.
func SyncFolder(path string) error {
	if runtime.GOOS == "windows" { // which has no such call
		return nil
	}
	folder, err := os.Open(path)
	if err == nil {
		err = errors.Join(folder.Sync(), folder.Close())
	}
	if err != nil {
		return fmt.Errorf("the folder %s cannot be made durable: %w", path, err)
	}
	return nil
}
