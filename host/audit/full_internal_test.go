package audit

import (
	"errors"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// fullDisk takes a part of what is written, and no more, while it is full.
type fullDisk struct {
	segment

	full bool
}

// Write fails in the middle.
func (d *fullDisk) Write(b []byte) (int, error) {
	if !d.full {
		return d.segment.Write(b)
	}
	n, err := d.segment.Write(b[:len(b)/2])
	return n, errors.Join(err, syscall.ENOSPC)
}

func ownKey(t *testing.T) *Key {
	t.Helper()
	key, err := OpenKey(filepath.Join(t.TempDir(), "audit.pem"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// filled opens a log, whose disk is full after the first record.
func filled(t *testing.T, folder string, key *Key, first Record) (*Log, *fullDisk) {
	t.Helper()
	l, err := Open(Options{Folder: folder, Host: "one", Key: key, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(first); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	disk := &fullDisk{segment: l.file, full: true}
	l.file = disk
	return l, disk
}

// TestFullDisk: while nothing can be written the log says so, before anybody does what is to be
// recorded. What was done all the same is in the log as soon as there is room, each once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	folder, key := t.TempDir(), ownKey(t)
	named := func(name string) Record { return Record{Call: "PurgeJobs", Name: name, Result: "ok"} }
	synctest.Test(t, func(t *testing.T) {
		l, disk := filled(t, folder, key, named("a"))
		if err := l.Writable(); err != nil {
			t.Errorf("before anybody knows: %v", err)
		}
		for _, name := range []string{"b", "c"} {
			if err := l.Append(named(name)); !errors.Is(err, job.Unavailable) {
				t.Errorf("%s: %v", name, err)
			}
			if err := l.Writable(); !errors.Is(err, job.Unavailable) {
				t.Errorf("after %s it is writable: %v", name, err)
			}
		}
		if err := l.Note(named("d")); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * tryAgain)
		synctest.Wait()
		if err := l.Writable(); !errors.Is(err, job.Unavailable) {
			t.Errorf("it is writable on a full disk: %v", err)
		}
		l.mu.Lock()
		disk.full = false
		l.mu.Unlock()
		time.Sleep(2 * tryAgain)
		synctest.Wait()
		if err := l.Writable(); err != nil {
			t.Errorf("there is room: %v", err)
		}
		if err := errors.Join(l.Append(named("e")), l.Close()); err != nil {
			t.Error(err)
		}
	})
	names := ""
	if _, err := Read(folder, 0, func(r *Record) bool { names += r.Name; return true }); err != nil || names != "abcde" {
		t.Errorf("the log has %q, %v", names, err)
	}
	if findings, end, err := Verify(folder, key.Public()); err != nil || len(findings) > 0 || end.Sequence != 5 {
		t.Errorf("%d records, findings %q, %v", end.Sequence, findings, err)
	}
}

// TestFullMemory: the log keeps so many records that it could not write, and then no more.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	folder, key := t.TempDir(), ownKey(t)
	synctest.Test(t, func(t *testing.T) {
		l, _ := filled(t, folder, key, Record{Call: "PurgeJobs"})
		kept := 0
		var err error
		for ; err == nil && kept < 4*maxWaiting; kept++ {
			err = l.Note(Record{Call: "PurgeJobs"})
		}
		if !errors.Is(err, job.Unavailable) || kept < maxWaiting {
			t.Errorf("%d records are kept, and then %v", kept, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
