package recording

import (
	"bufio"
	"cmp"
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/failpoint"
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
	missed  missed
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

// Run writes what is told until ctx ends, and then what was told until then. What
// is told after an error is left out until the next look for what is too old, so that a
// full disk is not tried with each change. It may run once.
func (l *Log) Run(ctx context.Context) {
	old := time.NewTicker(tidyEvery)
	defer old.Stop()
	untidy, unwritten, said := l.tidy(), error(nil), ""
	for pause := false; ; {
		select {
		case <-ctx.Done():
			pause = false
		case <-l.wake:
		case <-old.C:
			if l.file != nil && time.Since(l.born) > l.keep() {
				l.end() // nothing happens here; the next change begins another one
			}
			pause, untidy = false, l.tidy()
		}
		if pause {
			l.leaveOut()
		} else if tried, err := l.write(); tried {
			pause, unwritten = err != nil, err
		}
		if err := cmp.Or(unwritten, untidy); err == nil {
			said = ""
		} else if err.Error() != said {
			said = err.Error()
			l.options.Logger.Error("what happens on the board cannot be recorded", "board", l.options.Board, "error", err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	l.end()
}

// missed is how many claims a gap has, and when they were.
type missed struct {
	claims       int64
	since, until time.Time
}

func (m *missed) add(other missed) {
	if other.claims == 0 {
		return
	}
	if m.claims += other.claims; m.since.IsZero() || other.since.Before(m.since) {
		m.since = other.since
	}
	if other.until.After(m.until) {
		m.until = other.until
	}
}

// drop leaves out what happened, with the lock held: what follows is behind a gap.
func (l *Log) drop(list []board.Happening) {
	l.gap = true
	for i := range list {
		h := &list[i]
		if h.What != board.Taken && h.What != board.Lost {
			continue
		}
		m := &l.missed
		if m.claims++; m.since.IsZero() || h.At.Before(m.since) {
			m.since = h.At
		}
		if h.At.After(m.until) {
			m.until = h.At
		}
	}
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

// leaveOut gives up what is in the queue.
func (l *Log) leaveOut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(l.queue)
	for _, done := range l.flushes {
		close(done)
	}
	l.queue, l.flushes = nil, nil
}

// write writes what is in the queue, if anything is. After an error what follows is a gap.
func (l *Log) write() (tried bool, err error) {
	l.mu.Lock()
	queue, gap, missing, s, flushes := l.queue, l.gap, l.missed, l.source, l.flushes
	l.queue, l.gap, l.missed, l.flushes = nil, false, missed{}, nil
	l.mu.Unlock()
	written := 0
	defer func() {
		for _, done := range flushes {
			close(done)
		}
		if err != nil {
			_ = l.close() // the error is told already
			l.mu.Lock()
			defer l.mu.Unlock()
			l.drop(queue[written:])
			l.missed.add(missing)
		}
	}()
	if len(queue) == 0 {
		l.mu.Lock()
		l.gap = l.gap || gap
		l.missed.add(missing)
		l.mu.Unlock()
		return false, nil
	}
	if l.file == nil || gap || l.size >= l.options.Segment || time.Since(l.born) >= l.keep()/parts {
		if err := l.begin(s, gap, missing); err != nil {
			return true, err
		}
		missing = missed{}
	}
	for i := range queue {
		if l.size >= l.options.Segment {
			if err := l.begin(s, false, missed{}); err != nil {
				return true, err
			}
		}
		if err := l.put(lineOf(&queue[i], false)); err != nil {
			return true, err
		}
		written++
	}
	if err := failpoint.Fail("recording/before-flush"); err != nil {
		return true, err
	}
	err = l.out.Flush()
	failpoint.Hit("recording/after-flush")
	return true, err
}
