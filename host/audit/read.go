package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/boardd/boardd/sdk/job"
)

// Flaw is a line of a log that is no record, or not as it was written. Those around
// it can be read.
type Flaw struct {
	File   string
	Line   int    // from 1
	After  uint64 // the record before it; 0: none, or it could not be read either
	Reason string
}

// String says where the line is and what is wrong with it.
func (f Flaw) String() string {
	return fmt.Sprintf("%s: line %d, after record %d: %s", f.File, f.Line, f.After, f.Reason)
}

// maxFlaws is how many flaws one reading returns; those after them are like them.
const maxFlaws = 100

// segments returns the files of a log, in order, by the sequence numbers of their
// first records.
func segments(folder string) ([]string, error) {
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range found {
		if _, ok := firstOf(f.Name()); ok {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names) // they have the same length
	return names, nil
}

func segmentName(sequence uint64) string { return fmt.Sprintf("%020d%s", sequence, suffix) }

// firstOf returns the number of the record with which a file begins.
func firstOf(name string) (uint64, bool) {
	digits, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, ok && err == nil
}

// Read calls each with the records after a sequence number, as they stand in the
// files, until it returns false. Lines that cannot be read are stepped over, and
// returned.
func (l *Log) Read(after uint64, each func(*Record) bool) ([]Flaw, error) {
	return Read(l.Folder, after, each)
}

// Read is Log.Read for a folder that may be nobody's.
func Read(folder string, after uint64, each func(*Record) bool) ([]Flaw, error) {
	names, err := segments(folder)
	if err != nil {
		return nil, err
	}
	var flaws []Flaw
	for i, name := range names {
		if i+1 < len(names) && names[i+1] <= segmentName(after+1) {
			continue
		}
		more, err := readSegment(filepath.Join(folder, name), func(r *Record, flaw *Flaw) bool {
			if flaw != nil {
				if flaw.After >= after && len(flaws) < maxFlaws {
					flaws = append(flaws, *flaw)
				}
				return true
			}
			return r.Sequence <= after || each(r)
		})
		if err != nil || !more {
			return flaws, err
		}
	}
	return flaws, nil
}

// readSegment goes through a file's lines, each a record or a flaw. A last line that
// is not whole is being written.
func readSegment(path string, each func(*Record, *Flaw) bool) (more bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, maxLine)
	last, _ := firstOf(filepath.Base(path))
	last = max(last, 1) - 1
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		long := false
		for errors.Is(err, bufio.ErrBufferFull) { // no record is as long
			long = true
			line, err = lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		var r Record
		if long {
			err = job.Errorf(job.Corrupt, "it is longer than every record")
		} else {
			r, err = parse(line)
		}
		var flaw *Flaw
		if err != nil {
			flaw = &Flaw{File: filepath.Base(path), Line: n, After: last, Reason: err.Error()}
		} else {
			last = r.Sequence
		}
		if !each(&r, flaw) {
			return false, nil
		}
	}
}

// First returns what stood before the first record that can be read; the zero Chain
// if that is record 1, or there is none.
func First(folder string) (start Chain, err error) {
	_, err = Read(folder, 0, func(r *Record) bool {
		if r.Sequence > 1 {
			start = Chain{r.Sequence - 1, r.Previous}
		}
		return false
	})
	return start, err
}

// Hash returns the hash of one record; "" if it is not there or cannot be read.
func Hash(folder string, sequence uint64) (hash string) {
	if sequence == 0 {
		return ""
	}
	_, _ = Read(folder, sequence-1, func(r *Record) bool { // what cannot be read has no hash
		if r.Sequence == sequence {
			hash = r.Hash
		}
		return false
	})
	return hash
}

// Verify goes through a log and returns what is wrong with it, and how far it goes.
// Without a key it does not look at signatures.
func Verify(folder string, key Public) (findings []string, end Chain, err error) {
	names, err := segments(folder)
	if err != nil {
		return nil, end, err
	}
	t := trail{key: key}
	for _, name := range names {
		first := true
		_, err := readSegment(filepath.Join(folder, name), func(r *Record, flaw *Flaw) bool {
			if flaw != nil {
				t.note("%s", flaw)
				return true
			}
			if first && segmentName(r.Sequence) != name {
				t.note("%s: it begins with record %d", name, r.Sequence)
			}
			first = false
			t.add(r)
			return true
		})
		if err != nil {
			t.note("%s: %v", name, err)
		}
	}
	return t.finish(), t.end, nil
}
