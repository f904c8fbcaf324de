package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/plugin"
)

// What a store's folder holds.
const (
	dataFile = "boards.db"
	newFile  = "boards.db.new" // a store that is being made; never one that was used
	lockFile = "boards.lock"   // locked while the store is open; says by which server
)

// How long to wait for another process to let go of a store: a driver that was
// killed may be a moment away from its end.
const (
	lockWait = 2 * time.Second
	lockStep = 50 * time.Millisecond
)

// a folder is the place of one store, locked for this process.
type folder struct {
	path string
	lock *os.File
}

// openFolder makes and locks the folder.
func openFolder(ctx context.Context, path string) (*folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, job.Errorf(job.Invalid, "path: %v", err)
	}
	if err := makeFolder(path); err != nil {
		return nil, unavailable(fmt.Errorf("the folder cannot be made: %w", err))
	}
	f, err := os.OpenFile(filepath.Join(path, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, unavailable(fmt.Errorf("the lock cannot be opened: %w", err))
	}
	if err := waitForLock(ctx, path, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := writePid(f); err != nil {
		return nil, errors.Join(unavailable(fmt.Errorf("the lock cannot be written: %w", err)), f.Close())
	}
	return &folder{path: path, lock: f}, nil
}

// makeFolder makes path for this user alone, durably.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", path)
		}
		return nil
	}
	// The folders above that are made as well have to last as long.
	var above []string
	for parent := filepath.Dir(path); ; parent = filepath.Dir(parent) {
		above = append(above, parent)
		if _, err := os.Stat(parent); err == nil || parent == filepath.Dir(parent) {
			break
		}
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	for _, parent := range above {
		if err := durable.SyncFolder(parent); err != nil {
			return err
		}
	}
	return nil
}

func waitForLock(ctx context.Context, path string, f *os.File) error {
	wait := time.NewTimer(lockWait)
	defer wait.Stop()
	for {
		locked, err := tryLock(f)
		if locked {
			return nil
		}
		if err != nil {
			return unavailable(fmt.Errorf("%s cannot be locked: %w", f.Name(), err))
		}
		select {
		case <-time.After(lockStep):
		case <-wait.C:
			return job.Errorf(job.Unavailable, "the store in %s is in use by %s: stop it or choose another path", path, lockHolder(f))
		case <-ctx.Done():
			return &job.Error{Kind: job.Interrupted, Message: "waiting for the lock of " + path, Err: ctx.Err()}
		}
	}
}

// lockHolder says which process holds the lock, as far as it wrote it down.
func lockHolder(f *os.File) string {
	var text [32]byte
	n, _ := f.ReadAt(text[:], 0)
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:n])))
	if err != nil || pid <= 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", pid)
}

func writePid(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(plugin.Server())+"\n"), 0)
	return err
}

func (f *folder) file() string { return filepath.Join(f.path, dataFile) }

// close gives the lock back. The file stays: taking it away would let two
// processes lock two files of one name.
func (f *folder) close() error {
	return errors.Join(f.lock.Truncate(0), f.lock.Close())
}

// prepare makes sure that there is a sound store in the folder, a new one if there
// is none. A new one appears under its name only when it is whole and on the
// disk.
func (f *folder) prepare(logger *slog.Logger) error {
	fresh := filepath.Join(f.path, newFile)
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unavailable(err)
	}
	_, err := os.Stat(f.file())
	switch {
	case err == nil:
		heads, err := inspect(f.file())
		if err == nil && heads < 2 {
			logger.Warn("one of the two heads of the store is not sound: a change was cut off while it was written, or the disk lost something; "+
				"the store is as the other head has it", "path", f.file())
		}
		return err
	case !errors.Is(err, fs.ErrNotExist):
		return unavailable(err)
	}
	if err := create(fresh); err != nil {
		return unavailable(fmt.Errorf("a new store cannot be made: %w", err))
	}
	failpoint.Hit("embedded/folder/before-rename")
	if err := os.Rename(fresh, f.file()); err != nil {
		return unavailable(err)
	}
	if err := durable.SyncFolder(f.path); err != nil {
		return unavailable(err)
	}
	return nil
}

// create writes an empty store to path and waits until it is on the disk.
func create(path string) error {
	db, err := bbolt.Open(path, 0o600, boltOptions())
	if err != nil {
		return err
	}
	if err := db.Update(writeFormat); err != nil {
		return errors.Join(err, db.Close())
	}
	return db.Close()
}

// unavailable says that err kept the store from being used, and changed nothing.
func unavailable(err error) error { return &job.Error{Kind: job.Unavailable, Err: err} }
