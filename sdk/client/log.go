package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	boarddv1 "github.com/boardd/boardd/sdk/boardd/v1"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// NewLogEntry is an entry to be appended.
type NewLogEntry = boarddv1.NewLogEntry

// AppendLog adds entries to the log of a claimed job, about the operation of the
// given index (0 for a job without), and returns the serial of the last one. It
// may be at most 1,000 entries.
func (b *Board) AppendLog(ctx context.Context, c *Claim, index int32, entries ...*NewLogEntry) (*boarddv1.AppendLogResponse, error) {
	return call(ctx, b.client, "append log", 0, b.client.rpc.AppendLog, &boarddv1.AppendLogRequest{
		Board: b.name, Claim: proof(c), Index: index, Entries: entries, RequestId: NewUUID(),
	})
}

// LogPage is a part of a job's log.
type LogPage = boarddv1.ReadLogResponse

// ReadLog returns up to most entries after a serial, and waits up to wait for the
// first of them. It serves programs that cannot keep a stream open.
func (b *Board) ReadLog(ctx context.Context, uuid string, newerThan int64, most int32, wait time.Duration) (*LogPage, error) {
	return call(ctx, b.client, "read log", wait, b.client.rpc.ReadLog,
		&boarddv1.ReadLogRequest{Board: b.name, Uuid: uuid, NewerThan: newerThan, Max: most, Wait: duration(wait)})
}

// Log goes through the entries of a job's log after a serial. With follow it goes
// on with those that come, until the job has ended or is in the trash; it
// connects again by itself and goes on where it was. It ends with the first
// error, which comes without an entry.
func (b *Board) Log(ctx context.Context, uuid string, newerThan int64, follow bool) iter.Seq2[*LogEntry, error] {
	return func(yield func(*LogEntry, error) bool) {
		request := &boarddv1.GetLogRequest{Board: b.name, Uuid: uuid, NewerThan: newerThan, Follow: follow}
		begun, w := time.Now(), &watch{board: b}
		for failed := 0; ; failed++ {
			more, err := b.logOnce(ctx, w, request, func(e *LogEntry) bool {
				request.NewerThan, failed, begun = e.GetSerial(), 0, time.Now()
				return yield(e, nil)
			})
			if !more || err == nil {
				return
			}
			end := w.end(ctx, err)
			if end == nil && !follow && time.Since(begun) > b.client.retryFor {
				end = callError("get log", err)
			}
			if end != nil {
				yield(nil, end)
				return
			}
			// The end of ctx is seen by the next turn.
			_ = sleep.For(ctx, backoff(failed, 50*time.Millisecond, 5*time.Second))
		}
	}
}

// logOnce passes on the entries of one connection. more is false when the caller
// has had enough; without an error the log has ended.
func (b *Board) logOnce(ctx context.Context, w *watch, r *boarddv1.GetLogRequest, yield func(*LogEntry) bool) (more bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	ctx, way := onWay(ctx, b.name)
	request := connect.NewRequest(r)
	w.token = b.client.credentials.sign(request.Header())
	stream, err := b.client.rpc.GetLog(ctx, request)
	if err != nil {
		cancel()
		return true, err
	}
	defer func() { cancel(); _ = stream.Close() }()
	for stream.Receive() {
		if !yield(stream.Msg()) {
			return false, nil
		}
	}
	b.client.servers.ended(way, stream.Err())
	return true, stream.Err()
}

// A LogWriter makes lines entries of a job's log. It sends them by itself, soon
// and several at a time, and never keeps its writers waiting: what comes faster
// than the server takes it, beyond a bound, is left out with an entry that says
// so. It must be closed.
type LogWriter struct {
	board *Board
	claim *Claim
	index int32

	done    sync.WaitGroup
	wake    chan struct{}
	closing chan struct{} // closed by Close

	mu     sync.Mutex
	lines  []*logLines
	queue  []queuedEntry
	bytes  int
	left   int // lines that were left out since the last that was queued
	closed bool
	err    error
	cancel func() // called once when the server says that the job is to be canceled
}

// queuedEntry is an entry that waits to be sent.
type queuedEntry struct {
	*NewLogEntry
	lines int // that it stands for: one, or those that were left out
}

// The bounds of a LogWriter: of one line, and of what waits to be sent.
const (
	MaxLogLine    = 8 << 10   // bytes; a longer line is cut, with a mark
	MaxLogWaiting = 256 << 10 // bytes
)

// cutMark stands at the end of a line that was cut.
const cutMark = " [cut]"

// LogWriter returns a LogWriter for the operation of the given index (0 for a job
// without). canceled, which may be nil, is called when an answer says that the job
// is to be canceled. The entries are sent until Close has returned, whatever
// becomes of ctx.
func (b *Board) LogWriter(ctx context.Context, c *Claim, index int32, canceled func()) *LogWriter {
	w := &LogWriter{board: b, claim: c, index: index, wake: make(chan struct{}, 1), closing: make(chan struct{}), cancel: canceled}
	ctx = context.WithoutCancel(ctx)
	w.done.Go(func() { w.send(ctx) })
	return w
}

// Lines returns a writer whose lines become entries of the given type. It never
// fails, and may be used as long as the LogWriter is open.
func (w *LogWriter) Lines(entryType string) io.Writer {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &logLines{writer: w, entryType: entryType}
	w.lines = append(w.lines, l)
	return l
}

// logLines gathers the lines of one sort. It is guarded by its writer's mu.
type logLines struct {
	writer    *LogWriter
	entryType string
	line      []byte // that has no end yet
}

// Write takes bytes of lines.
func (l *logLines) Write(p []byte) (int, error) {
	l.writer.mu.Lock()
	defer l.writer.mu.Unlock()
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		if room := MaxLogLine + 1 - len(l.line); room > 0 { // one more, to see that it was cut
			l.line = append(l.line, part[:min(room, len(part))]...)
		}
		if ended {
			l.end()
		}
	}
	return len(p), nil
}

// end queues the line. The caller holds the writer's mu.
func (l *logLines) end() {
	text := l.line
	if len(text) > MaxLogLine {
		text = append(bytes.ToValidUTF8(text[:MaxLogLine-len(cutMark)], nil), cutMark...)
	}
	message := strings.ReplaceAll(strings.ToValidUTF8(strings.TrimSuffix(string(text), "\r"), "\uFFFD"), "\x00", "\uFFFD")
	l.line = l.line[:0]
	w := l.writer
	switch {
	case w.err != nil || w.closed:
	case w.bytes+len(message) > MaxLogWaiting:
		w.left++
	default:
		w.mark()
		w.queue = append(w.queue, queuedEntry{&NewLogEntry{Type: l.entryType, Message: message}, 1})
		w.bytes += len(message) + 1
		w.signal()
	}
}

// mark queues an entry for lines that were left out. The caller holds w.mu.
func (w *LogWriter) mark() {
	if w.left == 0 {
		return
	}
	message := fmt.Sprintf("%d lines were left out here: they came faster than they could be sent", w.left)
	w.queue = append(w.queue, queuedEntry{&NewLogEntry{Type: "left out", Message: message}, w.left})
	w.bytes += len(message) + 1
	w.left = 0
}

func (w *LogWriter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close sends what is left and returns the error that ended the sending, if one
// did.
func (w *LogWriter) Close() error {
	w.mu.Lock()
	if !w.closed {
		for _, l := range w.lines {
			if len(l.line) > 0 {
				l.end()
			}
		}
		w.mark()
		w.closed = true
		close(w.closing)
		w.signal()
	}
	w.mu.Unlock()
	w.done.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// send sends until the writer is closed, or the claim has ended.
func (w *LogWriter) send(ctx context.Context) {
	for range w.wake {
		for {
			entries, lines, closed := w.take()
			if len(entries) == 0 {
				if closed {
					return
				}
				break
			}
			answer, err := w.board.AppendLog(ctx, w.claim, w.index, entries...)
			if err != nil && w.fail(err, lines) {
				return
			}
			if answer.GetCancelRequested() {
				w.askToStop()
			}
			w.gather()
		}
	}
}

// logPause is how long lines are gathered between two calls.
const logPause = 100 * time.Millisecond

func (w *LogWriter) gather() {
	timer := time.NewTimer(logPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.closing:
	}
}

// take returns the next entries to be sent, and how many lines they stand for.
func (w *LogWriter) take() (entries []*NewLogEntry, lines int, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < len(w.queue) && n < 1000 && size+len(w.queue[n].Message) <= job.MaxLogAppend/2 {
		size += len(w.queue[n].Message) + 64
		n++
	}
	for _, e := range w.queue[:n] {
		w.bytes -= len(e.Message) + 1
		entries, lines = append(entries, e.NewLogEntry), lines+e.lines
	}
	w.queue = w.queue[n:]
	return entries, lines, w.closed
}

// fail takes note of an error, for which lines were not sent. It reports whether there is no
// use in going on.
func (w *LogWriter) fail(err error, lines int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind := job.KindOf(err); !w.closed && kind.Retryable() && !errors.Is(err, job.Internal) {
		w.left += lines // the client's own patience is over
		return false
	}
	w.err, w.queue = err, nil
	return true
}

func (w *LogWriter) askToStop() {
	w.mu.Lock()
	cancel := w.cancel
	w.cancel = nil
	w.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
