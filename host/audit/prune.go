package audit

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/boardd/boardd/sdk/durable"
)

// prune removes the oldest files, where they are over what is kept. The log says so
// in a signed record first, from which whoever checks the log learns that they are
// missing rightly. It is called after a file was begun, and by run alone.
func (l *Log) prune() {
	if !l.begun || l.Keep <= 0 && l.MaxBytes <= 0 {
		return
	}
	l.begun = false
	names, err := l.surplus()
	if err == nil && len(names) > 0 {
		err = l.remove(names)
	}
	if err != nil {
		l.Logger.Error("old records of the audit log could not be pruned", "error", err)
	}
}

// surplus returns the files that may go, and after them the first one that stays.
func (l *Log) surplus() ([]string, error) {
	names, err := segments(l.Folder)
	if err != nil {
		return nil, err
	}
	var total int64
	sizes := make([]int64, len(names))
	for i, name := range names {
		info, err := os.Stat(filepath.Join(l.Folder, name))
		if err != nil {
			return nil, err
		}
		sizes[i] = info.Size()
		total += sizes[i]
	}
	n := 0
	for ; n+1 < len(names); n++ {
		ended, _, err := l.begin(names[n+1])
		if err != nil {
			return nil, err
		}
		old := l.Keep > 0 && time.Since(ended) > l.Keep
		if !old && (l.MaxBytes <= 0 || total <= l.MaxBytes) {
			break
		}
		total -= sizes[n]
	}
	if n == 0 {
		return nil, nil
	}
	return names[:n+1], nil
}

// begin returns when the first record of a file was written, and what stood before
// it.
func (l *Log) begin(name string) (at time.Time, before Chain, err error) {
	found := false
	_, err = readSegment(filepath.Join(l.Folder, name), func(r *Record, flaw *Flaw) bool {
		if found = flaw == nil; found {
			at, before = r.At, Chain{r.Sequence - 1, r.Previous}
		}
		return false
	})
	if err == nil && !found {
		err = errors.New("the first line of " + name + " cannot be read, so that nothing would prove what stood before it")
	}
	return at, before, err
}

// remove removes all files of a list but the last, once a record says so.
func (l *Log) remove(names []string) error {
	stays := names[len(names)-1]
	_, before, err := l.begin(stays)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	l.write([]entry{{Record{At: time.Now(), Call: PrunedCall, Items: int64(before.Sequence), Result: before.Hash}, done}})
	if err := <-done; err != nil {
		return err
	}
	for _, name := range names[:len(names)-1] {
		if err := os.Remove(filepath.Join(l.Folder, name)); err != nil {
			return err
		}
	}
	l.Logger.Info("old records of the audit log were pruned", "up_to", before.Sequence)
	return durable.SyncFolder(l.Folder)
}
