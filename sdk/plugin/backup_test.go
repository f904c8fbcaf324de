package plugin

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// backuper is a store with a backup.
type backuper struct {
	*store
	parts []driver.BackupPart
	err   error
}

func (b backuper) Backup(context.Context) iter.Seq2[driver.BackupPart, error] {
	return func(yield func(driver.BackupPart, error) bool) {
		for _, p := range b.parts {
			if !yield(p, nil) {
				return
			}
			clear(p.Data) // the driver reads what comes next into it
		}
		if b.err != nil {
			yield(driver.BackupPart{}, b.err)
		}
	}
}

// TestBackup has what a driver yields, and how it fails, arrive.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := newStore(driver.Config{})
	program := programOf(s)
	program.Open = func(context.Context, driver.Config) (driver.Driver, error) {
		return backuper{s, []driver.BackupPart{{Name: "a", Size: 3, Data: []byte("ab")}, {Data: []byte("c")}, {Name: "b"}}, job.Errorf(job.Corrupt, "it is broken")}, nil
	}
	d, err := Pipe(t.Context(), program, driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	got, err := collected(d.(driver.Backuper).Backup(t.Context()))
	want := []driver.BackupPart{{Name: "a", Size: 3, Data: []byte("ab")}, {Data: []byte("c")}, {Name: "b"}}
	if diff := cmp.Diff(want, got); diff != "" || job.KindOf(err) != job.Corrupt {
		t.Errorf("the backup (-want +got):\n%s\nand then %v, want %v", diff, err, job.Corrupt)
	}
}

// TestBackupNot has a driver that makes no backups.
func TestBackupNot(t *testing.T) {
	t.Parallel()
	if _, err := collected(piped(t, newStore(driver.Config{})).(driver.Backuper).Backup(t.Context())); job.KindOf(err) != job.Unsupported || !strings.Contains(err.Error(), "makes no backups") {
		t.Errorf("got %v, want %v", err, job.Unsupported)
	}
}

// collected are the items of a stream, and the error that it ends with.
func collected[T any](stream iter.Seq2[T, error]) (list []T, err error) {
	for item, err := range stream {
		if err != nil {
			return list, err
		}
		list = append(list, item)
	}
	return list, nil
}
