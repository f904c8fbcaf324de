package recording

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// begin begins a segment: with what is open, and a gap where it does not follow on
// the one before.
func (l *Log) begin(s *source, gap bool, missing missed) error {
	l.end()
	if err := os.MkdirAll(l.options.Folder, 0o700); err != nil {
		return err
	}
	if err := l.tidy(); err != nil {
		return err
	}
	old, err := Segments(l.options.Folder)
	if err != nil {
		return err
	}
	if n := len(old); n > 0 {
		l.next = max(l.next, old[n-1].Number+1)
	}
	path := filepath.Join(l.options.Folder, fmt.Sprintf("%012d%s", l.next, ending))
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err != nil {
		l.file = nil // not a nil pointer of a file
		return err
	}
	failpoint.Hit("recording/segment-begun")
	l.out, l.size, l.born = bufio.NewWriterSize(l.file, 64<<10), 0, time.Now()
	if err = l.stand(s, gap, missing); err == nil {
		err = l.out.Flush()
	}
	if err != nil { // each try would leave a file, and the next one looks at all of them
		_ = l.close()
		return errors.Join(err, os.Remove(path))
	}
	l.next++
	return nil
}

// stand writes what is open.
func (l *Log) stand(s *source, gap bool, missing missed) error {
	l.mu.Lock()
	b := s.board
	l.mu.Unlock()
	var list []board.Happening
	head := Line{At: time.Now().UTC(), Event: Begin, Format: Format, Board: l.options.Board}
	if b != nil {
		list, head.Omitted = b.Standing(MaxOpen)
	}
	if err := l.put(head); err != nil {
		return err
	}
	if gap {
		if err := l.put(Line{At: head.At, Event: Gap}); err != nil {
			return err
		}
		if n := missing.claims; n > 0 {
			if err := l.put(Line{At: missing.until.UTC(), Event: Lost, Claims: n, Since: missing.since.UTC()}); err != nil {
				return err
			}
		}
	}
	for i := range list {
		if l.size >= l.options.Segment/2 { // the rest is for what happens
			break
		}
		if err := l.put(lineOf(&list[i], true)); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) put(line Line) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	n, err := l.out.Write(append(text, '\n'))
	l.size += int64(n)
	return err
}

// end ends the segment.
func (l *Log) end() {
	if err := l.close(); err != nil {
		l.options.Logger.Warn("the end of a recording could not be written", "board", l.options.Board, "error", err)
	}
}

// close ends the segment, if there is one.
func (l *Log) close() error {
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.out.Flush(), l.file.Close())
	l.file = nil
	return err
}

// tidy takes away segments that are too old or too many, but never the one that
// is being written. A file was changed last when its segment ended.
func (l *Log) tidy() error {
	list, err := Segments(l.options.Folder)
	if err != nil {
		return err
	}
	total := l.options.Segment // of the one that is being written, or is to be
	var failures []error
	for _, s := range slices.Backward(list) {
		if l.file != nil && s.Number == l.next-1 {
			continue
		}
		info, err := os.Stat(s.Path)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if total += info.Size(); total > l.options.Bytes || time.Since(info.ModTime()) > l.keep() {
			failures = append(failures, os.Remove(s.Path))
		}
	}
	return errors.Join(failures...)
}

// ending is that of a segment's file.
const ending = ".jsonl"

// Segment is one file of a recording.
type Segment struct {
	Number uint64
	Path   string
}

// Segments returns the segments of a folder, the oldest first. A folder that is
// not there has none.
func Segments(folder string) ([]Segment, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &job.Error{Kind: job.Unavailable, Message: "the recording cannot be read", Err: err}
	}
	var list []Segment
	for _, e := range entries {
		digits, ok := strings.CutSuffix(e.Name(), ending)
		n, err := strconv.ParseUint(digits, 10, 64)
		if ok && err == nil && e.Type().IsRegular() {
			list = append(list, Segment{Number: n, Path: filepath.Join(folder, e.Name())})
		}
	}
	slices.SortFunc(list, func(a, b Segment) int { return int(int64(a.Number) - int64(b.Number)) })
	return list, nil
}
