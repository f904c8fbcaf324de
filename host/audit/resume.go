package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// resume finds the end of the log, and returns the records with which it has to go
// on.
func (l *Log) resume() ([]Record, error) {
	names, err := segments(l.Folder)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	path := filepath.Join(l.Folder, names[len(names)-1])
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole < len(data) {
		l.Logger.Warn("the last line of the audit log was not whole, and is cut off", "file", path, "bytes", len(data)-whole)
		if err := os.Truncate(path, int64(whole)); err != nil {
			return nil, err
		}
	}
	if whole == 0 && len(names) > 1 { // begun and never written
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		return l.resume()
	}
	end := l.end(data[:whole])
	if l.chain = end.chain; l.chain == (Chain{}) && whole > 0 {
		l.chain = l.before(names)
	}
	l.since = end.first
	l.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	l.size = int64(whole)
	return end.records(l.Key.Public(), l.chain), err
}

// tail is what the last file of a log says.
type tail struct {
	first  time.Time // when the file was begun
	chain  Chain     // of the last record that can be read
	bad    int       // lines after it that cannot
	signed uint64    // the last record that bears the key's signature; 0: none does
}

// end looks at the last file from its end to the last record that bears the key's
// signature, which is usually the last one of all.
func (l *Log) end(data []byte) tail {
	t := tail{first: time.Now()}
	if first, err := parse(data[:bytes.IndexByte(data, '\n')+1]); err == nil {
		t.first = first.At
	}
	for rest := data; len(rest) > 0 && t.signed == 0; {
		begin := bytes.LastIndexByte(rest[:len(rest)-1], '\n') + 1
		r, err := parse(rest[begin:])
		rest = rest[:begin]
		switch {
		case err != nil:
			if t.chain == (Chain{}) {
				t.bad++
			}
			continue
		case t.chain == (Chain{}):
			t.chain = Chain{r.Sequence, r.Hash}
		}
		if l.Key.Public().check(&r) == signed && r.Sum() == r.Hash {
			t.signed = r.Sequence
		}
	}
	return t
}

// before returns the last record that can be read of the files before the last one.
func (l *Log) before(names []string) (end Chain) {
	for i := len(names) - 2; i >= 0 && end == (Chain{}); i-- {
		_, _ = readSegment(filepath.Join(l.Folder, names[i]), func(r *Record, flaw *Flaw) bool { // what cannot be read is stepped over
			if flaw == nil {
				end = Chain{r.Sequence, r.Hash}
			}
			return true
		})
	}
	return end
}

// records are those with which the log goes on: that it was changed while nobody had
// it open, or that another key signs it from here on.
func (t tail) records(key Public, end Chain) []Record {
	var list []Record
	if t.bad > 0 {
		list = append(list, Record{Call: TamperedCall, Result: fmt.Sprintf("the last lines after record %d, %d of them, are no records", end.Sequence, t.bad)})
	}
	switch {
	case t.signed == 0 && end.Sequence > 0:
		list = append(list, Record{Call: KeyCall, Name: key.ID(), Result: "ok"})
	case t.signed < end.Sequence:
		list = append(list, Record{Call: TamperedCall, Result: fmt.Sprintf(
			"records %d to %d were not signed: somebody else wrote them, or the machine stopped in the middle of a write", t.signed+1, end.Sequence)})
	}
	return list
}
