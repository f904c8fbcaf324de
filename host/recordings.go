package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/boardd/boardd/host/catalog"
	"github.com/boardd/boardd/host/config"
	"github.com/boardd/boardd/host/recording"
	"github.com/boardd/boardd/sdk/sleep"
)

// recordings are what this host records of its boards, in its data folder.
type recordings struct {
	folder string // empty: nothing can be recorded
	logger *slog.Logger

	mu    sync.Mutex // held until a log that ends is on the disk, and while one is deleted
	logs  map[catalog.At]*recorded
	going sync.WaitGroup // not guarded by mu
}

// recorded is the recording of one board. A board with new settings writes into
// the one of the board that it takes the place of.
type recorded struct {
	*recording.Log

	users int // guarded by recordings.mu
	stop  context.CancelFunc
	done  chan struct{}
}

// recordingFolder is where recordings are kept, within the data folder.
const recordingFolder = "recordings"

func newRecordings(dataDir string, logger *slog.Logger) *recordings {
	r := &recordings{logger: logger, logs: map[catalog.At]*recorded{}}
	if dataDir != "" {
		r.folder = filepath.Join(dataDir, recordingFolder)
	}
	return r
}

// of returns where a board's recording is kept.
func (r *recordings) of(at catalog.At) string { return filepath.Join(r.folder, at.Tenant, at.Name) }

// open returns the log of a board, and what gives it up again. It is nil where
// there is no folder for it.
func (r *recordings) open(at catalog.At, keep time.Duration) (_ *recording.Log, release func()) {
	if r.folder == "" {
		r.logger.Error("what happens on the board is not recorded: the server has no data_dir", "tenant", at.Tenant, "board", at.Name)
		return nil, func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.logs[at]
	if l == nil {
		ctx, stop := context.WithCancel(context.Background())
		l = &recorded{
			Log:  recording.New(recording.Options{Folder: r.of(at), Board: at.Tenant + "/" + at.Name, Logger: r.logger}),
			stop: stop, done: make(chan struct{}),
		}
		r.logs[at] = l
		r.going.Go(func() {
			defer close(l.done)
			l.Run(ctx)
		})
	}
	l.Keep(keep)
	l.users++
	return l.Log, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if l.users--; l.users == 0 && r.logs[at] == l {
			l.stop()
			<-l.done
			delete(r.logs, at)
		}
	}
}

// flush waits a moment until what a board told so far is written.
func (r *recordings) flush(ctx context.Context, at catalog.At) {
	r.mu.Lock()
	l := r.logs[at]
	r.mu.Unlock()
	if l != nil {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		l.Flush(ctx)
	}
}

// forget ends a board's recording and takes it away.
func (r *recordings) forget(at catalog.At) {
	if r.folder == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.logs[at]; l != nil {
		l.stop()
		<-l.done
		delete(r.logs, at)
	}
	if err := os.RemoveAll(r.of(at)); err != nil {
		r.logger.Error("the recording of a board could not be taken away", "tenant", at.Tenant, "board", at.Name, "error", err)
		return
	}
	if err := os.Remove(filepath.Dir(r.of(at))); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return // the tenant has others
	}
}

// ForgetRecording takes away what was recorded of a board.
func (h *Host) ForgetRecording(at catalog.At) { h.recordings.forget(at) }

// Recording returns the folder of what was recorded of a board, after what was told so
// far is written.
func (h *Host) Recording(ctx context.Context, at catalog.At) string {
	h.recordings.flush(ctx, at)
	return h.recordings.of(at)
}

// sweepRecordings takes away what is left of boards that there are no more, as soon
// as it is known which there are: they went while this host was away.
func (h *Host) sweepRecordings() {
	if k := h.catalog; k != nil {
		select {
		case <-k.ready:
		case <-h.running.Done():
			return
		}
		select {
		case <-k.open().Synced():
		case <-h.running.Done():
			return
		}
		if k.open().Fresh() {
			return // perhaps there were boards of which nobody knows any more
		}
	}
	func() {
		h.arranging.Lock()
		defer h.arranging.Unlock()
		h.recordings.sweep(h.Directory().Boards())
	}()
	for h.running.Err() == nil {
		h.PruneModules()
		_ = sleep.For(h.running, pruneEvery)
	}
}

// pruneEvery is how often compiled modules are looked for that nobody has any more.
const pruneEvery = 10 * time.Minute

// PruneModules takes away what was compiled of modules that nothing names any more.
func (h *Host) PruneModules() {
	if h.catalog == nil || h.catalog.unread() {
		return
	}
	if err := h.policies.Prune(h.catalog.view().Digests()); err != nil {
		h.logger.Warn("compiled policies could not be taken away", "error", err)
	}
}

func (r *recordings) sweep(boards map[catalog.At]config.Board) {
	if r.folder == "" {
		return
	}
	found, _ := filepath.Glob(filepath.Join(r.folder, "*", "*")) // the pattern is a good one
	for _, path := range found {
		at := catalog.At{Tenant: filepath.Base(filepath.Dir(path)), Name: filepath.Base(path)}
		if _, ok := boards[at]; !ok {
			r.forget(at)
		}
	}
}

// close waits until everything is written. All boards have ended.
func (r *recordings) close() { r.going.Wait() }
