package audit

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/filelock"
	"github.com/boardd/boardd/sdk/job"
)

// Limits of the log.
const (
	MaxSegment = 16 << 20 // bytes of one file, after which another is begun

	maxLine    = 16 << 10 // bytes; no record is as long
	maxWaiting = 4096     // records that wait for the disk; whoever has another one waits too
	gather     = 50 * time.Millisecond
	suffix     = ".audit"
)

// Log is a host's log. Its methods may be called from many goroutines at once.
type Log struct {
	folder string
	host   string
	logger *slog.Logger
	lock   *os.File // held as long as it is open

	waiting chan entry
	closing chan struct{}
	ended   chan struct{} // closed when nothing is written any more
	once    sync.Once
	done    sync.WaitGroup

	failed atomic.Pointer[error] // why nothing can be written any more; apart from mu, which is held while the disk is waited for

	mu    sync.Mutex // of what follows
	chain Chain
	file  *os.File
	size  int64
	text  []byte // of the last batch, whose room the next one has
}

// entry is a record that waits for the disk, and who waits for it.
type entry struct {
	record Record
	done   chan<- error // nil: nobody
}

// Open opens the log in a folder, or begins it. A last line that is not whole was
// never answered for, and is cut off. A log that another process has open is
// Unavailable. Close must be called.
func Open(folder, host string, logger *slog.Logger) (*Log, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	l := &Log{folder: folder, host: host, logger: logger, waiting: make(chan entry, maxWaiting), closing: make(chan struct{}), ended: make(chan struct{})}
	var err error
	if l.lock, err = filelock.Open(filepath.Join(folder, "lock")); errors.Is(err, filelock.ErrHeld) {
		return nil, errInUse
	} else if err != nil {
		return nil, err
	}
	if err = l.resume(); err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	l.done.Go(l.run)
	return l, nil
}

var errInUse = error(job.Errorf(job.Unavailable, "the audit log is in use by another server with the same data_dir"))

// resume finds the end of the log.
func (l *Log) resume() error {
	names, err := segments(l.folder)
	if err != nil || len(names) == 0 {
		return err
	}
	path := filepath.Join(l.folder, names[len(names)-1])
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole < len(data) {
		l.logger.Warn("the last line of the audit log was not whole, and is cut off", "file", path, "bytes", len(data)-whole)
		if err := os.Truncate(path, int64(whole)); err != nil {
			return err
		}
	}
	if whole == 0 && len(names) > 1 { // begun and never written
		if err := os.Remove(path); err != nil {
			return err
		}
		return l.resume()
	}
	if whole > 0 {
		last, err := parse(data[bytes.LastIndexByte(data[:whole-1], '\n')+1 : whole])
		if err != nil {
			return &job.Error{Kind: job.Corrupt, Message: "the audit log cannot be gone on with: in " + path + " the last line is no record; move the folder away to begin a new one", Err: err}
		}
		l.chain = Chain{last.Sequence, last.Hash}
	}
	l.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0o600)
	l.size = int64(whole)
	return err
}

// Head returns how far the log has come.
func (l *Log) Head() Chain {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chain
}

// Writable returns why nothing can be written any more, or nil.
func (l *Log) Writable() error {
	if err := l.failed.Load(); err != nil {
		return unwritable(*err)
	}
	return nil
}

// Append writes a record, and returns when it would survive a loss of power.
func (l *Log) Append(r Record) error {
	done := make(chan error, 1)
	if err := l.enqueue(entry{r, done}); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-l.ended:
	}
	select {
	case err := <-done:
		return err
	default:
		return errClosed // it came too late to be written
	}
}

// Note writes a record soon. It waits for no disk, unless thousands of records do.
func (l *Log) Note(r Record) error { return l.enqueue(entry{r, nil}) }

func (l *Log) enqueue(e entry) error {
	e.record.At = time.Now()
	if err := l.Writable(); err != nil {
		return err
	}
	select {
	case l.waiting <- e:
		return nil
	case <-l.closing:
		return errClosed
	}
}

var errClosed = error(job.Errorf(job.Unavailable, "the server is shutting down: ask again"))

func unwritable(err error) error {
	return &job.Error{Kind: job.Unavailable, Message: "the audit log cannot be written, and nothing is done without it", Err: err}
}

// Close writes what waits and closes the log. Nothing is added after it.
func (l *Log) Close() error {
	l.once.Do(func() { close(l.closing) })
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil // closed before
	}
	var err error
	if l.file != nil {
		err = l.file.Close()
	}
	err = errors.Join(err, l.lock.Close())
	l.file, l.lock = nil, nil
	return err
}

// run writes what comes, many records at a time.
func (l *Log) run() {
	defer close(l.ended)
	for {
		select {
		case first := <-l.waiting:
			l.write(l.batch(first))
		case <-l.closing:
			for {
				select {
				case first := <-l.waiting:
					l.write(l.batch(first))
				default:
					return
				}
			}
		}
	}
}

// batch gathers what waits. Records for which nobody waits let others catch up.
func (l *Log) batch(first entry) []entry {
	list := []entry{first}
	urgent := first.done != nil
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for len(list) < maxWaiting {
		select {
		case e := <-l.waiting:
			list = append(list, e)
			urgent = urgent || e.done != nil
			continue
		default:
		}
		if urgent {
			return list
		}
		select {
		case e := <-l.waiting:
			list = append(list, e)
			urgent = e.done != nil
		case <-timer.C:
			return list
		case <-l.closing:
			return list
		}
	}
	return list
}

// write writes a batch and tells those who wait.
func (l *Log) write(list []entry) {
	err := l.Writable()
	if err == nil {
		l.mu.Lock()
		err = l.commit(list)
		l.mu.Unlock()
		if err != nil {
			err = unwritable(err)
		}
	}
	for _, e := range list {
		if e.done != nil {
			e.done <- err
		}
	}
}

// commit makes records durable. After an error the file's end is not known, so
// that nothing is written until the log is opened anew; only a batch that did not
// fit is taken back.
func (l *Log) commit(list []entry) error {
	chain := l.chain
	text := l.text[:0]
	for i := range list {
		r := &list[i].record
		text = r.seal(text, chain.Sequence+1, l.host, chain.Hash)
		chain = Chain{r.Sequence, r.Hash}
	}
	l.text = text
	if err := l.room(); err != nil {
		return err
	}
	if _, err := l.file.Write(text); err != nil {
		if back := l.file.Truncate(l.size); back != nil {
			broken := errors.Join(err, back)
			l.failed.Store(&broken)
		}
		l.logger.Error("the audit log cannot be written", "error", err)
		return err
	}
	if err := l.file.Sync(); err != nil {
		l.failed.Store(&err)
		l.logger.Error("the audit log cannot be made durable", "error", err)
		return err
	}
	l.chain, l.size = chain, l.size+int64(len(text))
	return nil
}

// room begins a new segment where it is time.
func (l *Log) room() error {
	if l.file != nil && l.size < MaxSegment {
		return nil
	}
	path := filepath.Join(l.folder, segmentName(l.chain.Sequence+1))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	l.file, l.size = file, 0
	folder, err := os.Open(l.folder)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
