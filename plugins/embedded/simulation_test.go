package embedded

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/boardd/boardd/internal/simulation"
	"github.com/boardd/boardd/internal/simulation/stores"
	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

var errStopped = errors.New("the machine stopped")

// A diskStore is a store as the simulation steps it: on the clock of a bubble, and with a
// journal whose writes can end in the middle.
type diskStore struct {
	t      *testing.T
	folder string // of all that the store was in
	inside int    // how often it was restarted
	began  time.Time
	store  *Store

	left, how int // writes until the crash; -1: there is none
	stopped   bool
	unsynced  []unsynced
	lies      bool // a sync does nothing
}

// An unsynced is a write that the disk may lose.
type unsynced struct {
	f  *os.File
	b  []byte
	at int64
}

func newDiskStore(t *testing.T, folder string, lies bool) *diskStore {
	t.Helper()
	d := &diskStore{t: t, folder: folder, began: time.Now(), left: -1, lies: lies}
	if err := d.start(); err != nil {
		t.Errorf("a new store: %v", err)
	}
	return d
}

func (d *diskStore) path() string { return filepath.Join(d.folder, string(rune('a'+d.inside%2))) }

func (d *diskStore) start() error {
	s, err := open(context.Background(), d.path(), options{
		logger: slog.New(slog.DiscardHandler), exit: func(int) {},
		clock:  clock{wall: time.Now, boot: func() time.Duration { return time.Since(d.began) + time.Hour }, id: 1},
		disk:   wal.Disk{Write: d.write, Sync: d.sync},
		limits: storageLimits{journalBytes: 8 << 10, changes: 12, ringBytes: 1 << 10},
	})
	d.store = s
	return err
}

// write writes to the journal, which is on the disk when it is synced. Of the write at
// which the process ends, nothing is on the disk, with what was not synced before; or a
// part of it is there: its beginning, its end without its beginning, all but one bit, or
// all of it.
func (d *diskStore) write(f *os.File, b []byte, at int64) error {
	if d.stopped {
		return errStopped
	}
	d.unsynced = append(d.unsynced, unsynced{f, bytes.Clone(b), at})
	if d.left < 0 || d.left > 0 {
		d.left = max(d.left-1, -1)
		return nil
	}
	d.stopped = true
	last := &d.unsynced[len(d.unsynced)-1]
	half := len(b) * (1 + d.how/5) / 4
	switch d.how % 5 {
	case 0:
		return errStopped
	case 1:
		last.b = last.b[:half]
	case 2:
		last.b, last.at = last.b[half:], at+int64(half)
	case 3:
		last.b[half] ^= 4
	}
	return errors.Join(errStopped, d.flush())
}

func (d *diskStore) flush() error {
	var errs []error
	for _, w := range d.unsynced {
		_, err := w.f.WriteAt(w.b, w.at)
		errs = append(errs, err)
	}
	d.unsynced = nil
	return errors.Join(errs...)
}

func (d *diskStore) sync(*os.File) error {
	if d.stopped {
		return errStopped
	}
	if d.lies {
		return nil
	}
	return d.flush()
}

// Arm has the process end.
func (d *diskStore) Arm(which, how uint8) { d.left, d.how = int(which)%3/2, int(how) }

// Disarm reports whether it has ended.
func (d *diskStore) Disarm() bool {
	d.left = -1
	return d.stopped
}

// Restart starts a process with what is on the disk: a copy of it, since the process
// that is ended here still writes while it closes.
func (d *diskStore) Restart() error {
	synctest.Wait()
	from := d.path()
	d.inside++
	to := d.path()
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	for _, name := range append([]string{dataFile, markFile}, wal.Files[:]...) {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), b, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	d.stopped = true
	_ = d.store.Close() // what it says is of a disk that is not there any more
	d.stopped, d.unsynced = false, nil
	return d.start()
}

func (d *diskStore) Open(spec driver.BoardSpec) (driver.BoardStatus, error) {
	spec.Settings = []byte("{}")
	return d.store.OpenBoard(context.Background(), spec)
}

func (d *diskStore) Apply(_ int, op *driver.Op) driver.Result {
	return d.store.Apply(context.Background(), "b", []driver.Op{*op})[0]
}

func (d *diskStore) Read(ids []job.ID, parts driver.Parts) ([]driver.Record, error) {
	return d.store.Read(context.Background(), "b", ids, parts)
}

func (d *diskStore) Count() (driver.Counts, error) { return d.store.Count(context.Background(), "b") }

func (d *diskStore) Scan(req driver.ScanRequest) (list []driver.Record, from driver.Position, err error) {
	for {
		next := ""
		for page, err := range d.store.Scan(context.Background(), "b", req) {
			if err != nil {
				return nil, 0, err
			}
			list, from, next = append(list, page.Records...), page.Position, page.Next
		}
		if req.Limit == 0 || next == "" {
			return list, from, nil
		}
		req.After = next
	}
}

func (d *diskStore) Since(after driver.Position) (driver.Changes, error) {
	for step, err := range d.store.Watch(context.Background(), "b", after) {
		return step, err
	}
	return driver.Changes{}, errStopped
}

func (d *diskStore) Close() {
	if d.store != nil { // it could be started again
		_ = d.store.Close()
	}
	_ = os.RemoveAll(d.folder)
}

func diskGame(t *testing.T, lies bool) *simulation.Game {
	t.Helper()
	return stores.OnDisk("embedded", func() stores.Crasher { return newDiskStore(t, t.TempDir(), lies) })
}

// TestSimulation runs one seed for every hundred of the simulations in memory.
func TestSimulation(t *testing.T) {
	first, count := simulation.Asked(t)
	g := diskGame(t, false)
	total := g.Seeds(t, first/100, count/100)
	t.Logf("%s: %d seeds from %d on, %d steps, %d pairs", g.Name, total.Seeds, first/100, total.Steps, len(total.Coverage))
	if count < simulation.CISeeds {
		return
	}
	for _, kind := range []string{"post", "claim", "release", "remove"} {
		if total.Coverage[simulation.Pair{One: "crash", Other: kind}] == 0 {
			t.Errorf("no process ended during an op of the kind %s", kind)
		}
	}
}

// TestSimulationFindsLies checks that a disk that loses what was synced is found out.
func TestSimulationFindsLies(t *testing.T) {
	t.Parallel()
	seed, r, found := diskGame(t, true).Find(t, 0, 20)
	if !found {
		t.Fatal("20 seeds did not find it")
	}
	t.Logf("seed %d, step %d: %s", seed, r.Steps, r.Problem)
}

// TestSimulationReplays runs seeds twice, although the store has goroutines.
func TestSimulationReplays(t *testing.T) {
	t.Parallel()
	diskGame(t, false).Replays(t, 10)
}
