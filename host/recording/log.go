package recording

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
)

// Bounds of a recording.
const (
	MaxBytes   = 256 << 20 // of all segments of a board; the oldest go first
	MaxSegment = 16 << 20  // bytes of a segment, after which another one is begun
	MaxOpen    = 20_000    // open jobs that a segment begins with, the first ones in the order
	MaxQueued  = 50_000    // changes that wait to be written; more are a gap
)

// parts is how many segments the time that is kept has at least: so much of it is
// given up at once.
const parts = 8

// Options say what a Log keeps.
type Options struct {
	Folder string
	Board  string        // TENANT/NAME
	Keep   time.Duration // what is older goes; Log.Keep changes it
	Logger *slog.Logger

	// The sizes; 0: MaxBytes, MaxSegment.
	Bytes, Segment int64
}

// Log writes a recording. Run does the writing; its sources may tell it things
// from when it was made.
type Log struct {
	options Options

	mu      sync.Mutex
	source  *source // the one that is listened to
	queue   []board.Happening
	gap     bool // something was not told before what is in the queue
	wake    chan struct{}
	flushes []chan struct{} // closed when what was told so far is written

	file *os.File
	out  *bufio.Writer
	size int64
	born time.Time
	next uint64 // number of the next segment
}

// New returns a log. Its folder is made when there is something to write.
func New(o Options) *Log {
	if o.Bytes <= 0 {
		o.Bytes = MaxBytes
	}
	if o.Segment <= 0 {
		o.Segment = MaxSegment
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Log{options: o, wake: make(chan struct{}, 1)}
}

// Standing is where a log learns which jobs are open: board.Board has it.
type Standing interface {
	Standing(most int) (list []board.Happening, more int64)
}

// source is one board that tells the log what happens. The last one that was made
// is listened to.
type source struct {
	log   *Log
	board Standing
}

// Source returns what a board is to tell its happenings to, and a function that
// takes the board as soon as there is one. Boards that were given one before are
// not listened to any more.
func (l *Log) Source() (board.Recorder, func(Standing)) {
	s := &source{log: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.source, l.gap, l.queue = s, true, nil
	return s, func(b Standing) {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.board = b
	}
}

// Restart implements board.Recorder.
func (s *source) Restart() {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.source == s {
		l.gap = true
		l.queue = nil
	}
}

// Tell implements board.Recorder.
func (s *source) Tell(list []board.Happening) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.source != s:
		return
	case len(l.queue)+len(list) > MaxQueued:
		l.gap, l.queue = true, nil
	default:
		l.queue = append(l.queue, list...)
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run writes what is told until ctx ends, and then what was told until then. It
// may run once.
func (l *Log) Run(ctx context.Context) {
	var failed string
	old := time.NewTicker(tidyEvery)
	defer old.Stop()
	err := l.tidy()
	for {
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-old.C:
			if l.file != nil && time.Since(l.born) > l.keep() {
				l.end() // nothing happens here; the next change begins another one
			}
			err = l.tidy()
		}
		if err = errors.Join(err, l.write()); err != nil && err.Error() != failed {
			failed = err.Error()
			l.options.Logger.Error("what happens on the board cannot be recorded", "board", l.options.Board, "error", err)
		} else if err == nil {
			failed = ""
		}
		if ctx.Err() != nil {
			break
		}
	}
	l.end()
}

// tidyEvery is how often it is looked for what is too old, where nothing happens.
const tidyEvery = time.Minute

// Flush waits until what was told so far is written, or ctx ends.
func (l *Log) Flush(ctx context.Context) {
	done := make(chan struct{})
	l.mu.Lock()
	l.flushes = append(l.flushes, done)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Keep sets what is kept: what is older goes.
func (l *Log) Keep(keep time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.options.Keep = keep
}

func (l *Log) keep() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.options.Keep
}

// write writes what is in the queue. After an error what follows is a gap.
func (l *Log) write() (err error) {
	l.mu.Lock()
	queue, gap, s, flushes := l.queue, l.gap, l.source, l.flushes
	l.queue, l.gap, l.flushes = nil, false, nil
	l.mu.Unlock()
	defer func() {
		for _, done := range flushes {
			close(done)
		}
		if err != nil {
			l.end()
			l.mu.Lock()
			l.gap = true
			l.mu.Unlock()
		}
	}()
	if len(queue) == 0 {
		l.mu.Lock()
		l.gap = l.gap || gap
		l.mu.Unlock()
		return nil
	}
	if l.file == nil || gap || l.size >= l.options.Segment || time.Since(l.born) >= l.keep()/parts {
		if err := l.begin(s, gap); err != nil {
			return err
		}
	}
	for i := range queue {
		if l.size >= l.options.Segment {
			if err := l.begin(s, false); err != nil {
				return err
			}
		}
		if err := l.put(lineOf(&queue[i], false)); err != nil {
			return err
		}
	}
	return l.out.Flush()
}

// begin begins a segment: with what is open, and a gap where it does not follow on
// the one before.
func (l *Log) begin(s *source, gap bool) error {
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
	l.next++
	l.out, l.size, l.born = bufio.NewWriterSize(l.file, 64<<10), 0, time.Now()
	return l.stand(s, gap)
}

// stand writes what is open.
func (l *Log) stand(s *source, gap bool) error {
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
	if l.file == nil {
		return
	}
	if err := errors.Join(l.out.Flush(), l.file.Close()); err != nil {
		l.options.Logger.Warn("the end of a recording could not be written", "board", l.options.Board, "error", err)
	}
	l.file = nil
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
