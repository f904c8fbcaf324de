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

// segments returns the files of a log, in order, by the sequence numbers of their
// first records.
func segments(folder string) ([]string, error) {
	found, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range found {
		digits, ok := strings.CutSuffix(f.Name(), suffix)
		if _, err := strconv.ParseUint(digits, 10, 64); ok && err == nil {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names) // they have the same length
	return names, nil
}

func segmentName(sequence uint64) string { return fmt.Sprintf("%020d%s", sequence, suffix) }

// Read calls each with the records after a sequence number, as they stand in the
// files, until it returns false.
func (l *Log) Read(after uint64, each func(*Record) bool) error {
	return Read(l.folder, after, each)
}

// Read is Log.Read for a folder that may be nobody's.
func Read(folder string, after uint64, each func(*Record) bool) error {
	return scan(folder, after, func(_ string, line []byte) (bool, error) {
		r, err := parse(line)
		if err != nil {
			return false, err
		}
		return r.Sequence <= after || each(&r), nil
	})
}

// scan goes through the lines of those segments that may have records after a
// sequence number. A last line that is not whole is being written.
func scan(folder string, after uint64, each func(file string, line []byte) (bool, error)) error {
	names, err := segments(folder)
	if err != nil {
		return err
	}
	for i, name := range names {
		if i+1 < len(names) && names[i+1] <= segmentName(after+1) {
			continue
		}
		more, err := scanFile(filepath.Join(folder, name), each)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func scanFile(path string, each func(file string, line []byte) (bool, error)) (more bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, maxLine)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, job.Errorf(job.Corrupt, "%s: a line is longer than every record", filepath.Base(path))
		}
		if more, err := each(filepath.Base(path), line); err != nil || !more {
			return false, err
		}
	}
}

// Verify goes through a log and returns what is wrong with it, and how far it
// goes.
func Verify(folder string) (findings []string, end Chain, err error) {
	names, err := segments(folder)
	if err != nil {
		return nil, end, err
	}
	for _, name := range names {
		first := true
		more, err := scanFile(filepath.Join(folder, name), func(file string, line []byte) (bool, error) {
			r, err := parse(line)
			if err != nil {
				findings = append(findings, fmt.Sprintf("%s: after record %d: %v", file, end.Sequence, err))
				return true, nil
			}
			if first && segmentName(r.Sequence) != file {
				findings = append(findings, fmt.Sprintf("%s: it begins with record %d", file, r.Sequence))
			}
			first = false
			if err := end.Next(&r); err != nil {
				findings = append(findings, fmt.Sprintf("%s: %v", file, err))
			}
			return true, nil
		})
		if err != nil || !more {
			findings = append(findings, fmt.Sprint(err))
		}
	}
	return findings, end, nil
}

// CheckHead returns what a head that was published says of a log that ends
// sooner, or goes another way; "" if it is in the log. at returns the hash of a
// record.
func CheckHead(end Chain, published Chain, at func(uint64) string) string {
	switch {
	case published.Sequence == 0:
		return ""
	case published.Sequence > end.Sequence:
		return fmt.Sprintf("the log ends with record %d, and record %d was published as its head: the tail was cut off", end.Sequence, published.Sequence)
	case at(published.Sequence) != published.Hash:
		return fmt.Sprintf("record %d is not the one that was published as the log's head: it was written anew", published.Sequence)
	}
	return ""
}
