package audit

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/boardd/boardd/host/filelock"
	"github.com/boardd/boardd/sdk/durable"
	"github.com/boardd/boardd/sdk/failpoint"
	"github.com/boardd/boardd/sdk/job"
)

// Limits of the log.
const (
	MaxSegment = 16 << 20 // bytes of one file, after which another is begun

	maxLine    = 16 << 10 // bytes; no record is as long
	maxWaiting = 4096     // records that wait for the disk; whoever has another one waits too
	tryAgain   = time.Second
	gather     = 50 * time.Millisecond
	suffix     = ".audit"
)

// Options say what Open needs to know.
type Options struct {
	Folder   string
	Host     string        // whose log it is
	Key      *Key          // what it is signed with
	Keep     time.Duration // how long records are kept at least; 0: forever. Whole files are pruned
	MaxBytes int64         // of all files together, above which old ones are pruned, however young; 0: no bound
	Logger   *slog.Logger
}

// Log is a host's log. Its methods may be called from many goroutines at once.
type Log struct {
	Options

	lock *os.File // held as long as it is open

	waiting chan entry
	closing chan struct{}
	ended   chan struct{} // closed when nothing is written any more
	once    sync.Once
	done    sync.WaitGroup

	// Apart from mu, which is held while the disk is waited for.
	failed   atomic.Pointer[error]   // why nothing can be written any more
	troubled atomic.Pointer[trouble] // why nothing can be written now

	kept []entry // what could not be written yet; only run has it, and Open before

	mu    sync.Mutex // of what follows
	chain Chain
	file  segment
	size  int64
	since time.Time // when the file was begun
	begun bool      // a file, since it was last looked for what is to be pruned
	text  []byte    // of the last batch, whose room the next one has
}

// segment is the file that is written to: an *os.File, but for tests of full disks.
type segment interface {
	io.WriteCloser
	Truncate(size int64) error
	Sync() error
}

// trouble is why the last write failed, and how many records are kept until one succeeds.
type trouble struct {
	err  error
	kept int
}

// entry is a record that waits for the disk, and who waits for it.
type entry struct {
	record Record
	done   chan<- error // nil: nobody
}

// Open opens the log in a folder, or begins it. A last line that is not whole was
// never answered for, and is cut off. Whatever else is wrong at its end is told by a
// record of the log, and the log goes on. A log that another process has open is
// Unavailable. Close must be called.
func Open(o Options) (*Log, error) {
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, err
	}
	l := &Log{Options: o, waiting: make(chan entry, maxWaiting), closing: make(chan struct{}), ended: make(chan struct{}), begun: true}
	var err error
	if l.lock, err = filelock.Open(filepath.Join(o.Folder, "lock")); errors.Is(err, filelock.ErrHeld) {
		return nil, errInUse
	} else if err != nil {
		return nil, err
	}
	first, err := l.resume()
	if err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	for _, r := range first {
		r.At = time.Now()
		l.write([]entry{{r, nil}})
	}
	l.done.Go(l.run)
	return l, nil
}

var errInUse = error(job.Errorf(job.Unavailable, "the audit log is in use by another server with the same data_dir"))

// Head returns how far the log has come.
func (l *Log) Head() Chain {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chain
}

// Writable returns why nothing can be written, or nil.
func (l *Log) Writable() error {
	if t := l.troubled.Load(); t != nil {
		return unwritable(t.err)
	}
	return l.broken()
}

// broken returns why nothing can be written any more, or nil.
func (l *Log) broken() error {
	if err := l.failed.Load(); err != nil {
		return unwritable(*err)
	}
	return nil
}

// Append writes a record, and returns when it would survive a loss of power. A record that
// cannot be written is an error, and is kept all the same: what it tells of was done. It is
// written as soon as that can be.
func (l *Log) Append(r Record) error {
	if t := l.troubled.Load(); t != nil {
		return cmp.Or(l.enqueue(entry{r, nil}), unwritable(t.err))
	}
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
	if err := l.broken(); err != nil {
		return err
	}
	if t := l.troubled.Load(); t != nil && t.kept >= maxWaiting {
		return unwritable(t.err)
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
	l.prune()
	for {
		waiting, again := l.waiting, (<-chan time.Time)(nil)
		if len(l.kept) > 0 {
			waiting, again = nil, time.After(tryAgain)
		}
		select {
		case first := <-waiting:
			l.write(l.batch(first))
			l.prune()
		case <-again:
			l.write(l.waited())
		case <-l.closing:
			l.write(l.waited())
			return
		}
	}
}

// waited returns what waits now.
func (l *Log) waited() (list []entry) {
	for {
		select {
		case e := <-l.waiting:
			list = append(list, e)
		default:
			return list
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

// write writes what was kept and a batch, and tells those who wait. What cannot be written is
// kept until it is tried again.
func (l *Log) write(list []entry) {
	list = append(l.kept, list...)
	if l.kept = nil; len(list) == 0 {
		return
	}
	err := l.broken()
	if err == nil {
		l.mu.Lock()
		err = l.commit(list)
		l.mu.Unlock()
		l.settle(list, err)
	}
	if err != nil {
		err = unwritable(err)
	}
	for i := range list {
		if done := list[i].done; done != nil {
			list[i].done = nil
			done <- err
		}
	}
}

// settle notes whether records were written.
func (l *Log) settle(list []entry, err error) {
	if err == nil {
		if l.troubled.Swap(nil) != nil {
			l.Logger.Info("the audit log can be written again", "records", len(list))
		}
		return
	}
	if l.failed.Load() == nil {
		l.kept = list
	}
	if l.troubled.Swap(&trouble{err, len(list)}) == nil {
		l.Logger.Error("the audit log cannot be written", "error", err)
	}
}

// commit makes records durable. A batch that did not fit is taken back. After another error
// the file's end is not known, so that nothing is written until the log is opened anew.
func (l *Log) commit(list []entry) error {
	chain := l.chain
	text := l.text[:0]
	for i := range list {
		r := &list[i].record
		var key *Key
		if i == len(list)-1 {
			key = l.Key // which vouches for those before it too
		}
		text = r.seal(text, chain.Sequence+1, l.Host, chain.Hash, key)
		chain = Chain{r.Sequence, r.Hash}
	}
	l.text = text
	if err := l.room(); err != nil {
		return err
	}
	err := failpoint.Fail("audit/before-write")
	if err == nil {
		_, err = l.file.Write(text)
	}
	if err != nil {
		if back := l.file.Truncate(l.size); back != nil {
			err = errors.Join(err, back)
			l.failed.Store(&err)
		}
		return err
	}
	if err = failpoint.Fail("audit/before-sync"); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		l.failed.Store(&err)
		l.Logger.Error("the audit log cannot be made durable", "error", err)
		return err
	}
	failpoint.Hit("audit/after-sync")
	l.chain, l.size = chain, l.size+int64(len(text))
	return nil
}

// room begins a new segment where it is time.
func (l *Log) room() error {
	if l.file != nil && l.size < MaxSegment && (l.Keep == 0 || l.size == 0 || time.Since(l.since) < l.Keep/segmentsKept) {
		return nil
	}
	path := filepath.Join(l.Folder, segmentName(l.chain.Sequence+1))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	failpoint.Hit("audit/segment-begun")
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	l.file, l.size, l.since, l.begun = file, 0, time.Now(), true
	return durable.SyncFolder(l.Folder)
}

// segmentsKept is in how many files the records are at least that are kept for a
// time, so that those past it are not long kept with younger ones.
const segmentsKept = 16
