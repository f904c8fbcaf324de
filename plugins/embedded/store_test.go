package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// openBoard opens a store with the board "b" in it.
func openBoard(t *testing.T, path string, o options, spec driver.BoardSpec) (*Store, driver.BoardStatus) {
	t.Helper()
	s := openStore(t, path, o)
	t.Cleanup(func() { _ = s.Close() })
	spec.Name = "b"
	status, err := s.OpenBoard(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return s, status
}

// TestCommitError checks that a change whose record did not reach the disk is never
// called done, and that the process would end at once.
func TestCommitError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		fail func(fail *atomic.Bool, o *options)
	}{
		{"sync", func(fail *atomic.Bool, o *options) {
			o.disk.Sync = func(f *os.File) error {
				if fail.Load() {
					return syscall.EIO
				}
				return wal.SyncData(f)
			}
		}},
		{"full after all", func(fail *atomic.Bool, o *options) {
			o.disk.Sync = func(f *os.File) error {
				if fail.Load() {
					return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
				}
				return wal.SyncData(f)
			}
		}},
		{"write", func(fail *atomic.Bool, o *options) {
			o.disk.Write = func(f *os.File, b []byte, at int64) error {
				if fail.Load() {
					return syscall.EIO
				}
				_, err := f.WriteAt(b, at)
				return err
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var fail atomic.Bool
			var code atomic.Int32
			o := options{exit: func(n int) { code.Store(int32(n)) }}
			test.fail(&fail, &o)
			s, _ := openBoard(t, t.TempDir(), o, driver.BoardSpec{})
			mustApply(t, s, postOf(numberedID(1)))
			fail.Store(true)
			r := s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(2))})[0]
			if r.Kind != job.OutcomeUnknown || code.Load() != 1 {
				t.Errorf("the answer is %v %s and the exit code %d, want OUTCOME_UNKNOWN and 1", r.Kind, r.Message, code.Load())
			}
			wantDead(t, s)
		})
	}
}

func wantDead(t *testing.T, s *Store) {
	t.Helper()
	if r := s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(3))})[0]; r.Kind != job.Unavailable {
		t.Errorf("the next answer is %v, want UNAVAILABLE", r.Kind)
	}
	if err := s.Health(t.Context()); !errors.Is(err, job.Unavailable) {
		t.Errorf("health is %v, want Unavailable", err)
	}
	if _, err := s.Read(t.Context(), "b", []job.ID{numberedID(1)}, 0); !errors.Is(err, job.Unavailable) {
		t.Errorf("a read gives %v, want Unavailable", err)
	}
}

// TestCheckpointError checks that the process would end when the file cannot be
// written, and that a disk that is full for a while does no harm.
func TestCheckpointError(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		fail  func(tx *bbolt.Tx) error
		fatal bool
	}{
		{"fsync", func(tx *bbolt.Tx) error { return errors.Join(tx.Commit(), syscall.EIO) }, true},
		{"write", func(tx *bbolt.Tx) error {
			return errors.Join(tx.Rollback(), &os.PathError{Op: "write", Path: "x", Err: syscall.EIO})
		}, true},
		{"full after all", func(tx *bbolt.Tx) error {
			return errors.Join(tx.Commit(), &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
		}, true},
		{"full", func(tx *bbolt.Tx) error {
			return errors.Join(tx.Rollback(), &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
		}, false},
		{"full while growing", func(tx *bbolt.Tx) error {
			return errors.Join(errors.New("file resize error: no space left on device"), tx.Rollback())
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var fail atomic.Bool
			var code atomic.Int32
			hand, path := &handClock{}, t.TempDir()
			s, _ := openBoard(t, path, options{
				clock: hand.clock(1), exit: func(n int) { code.Store(int32(n)) }, limits: storageLimits{journalBytes: 4 << 10},
				commit: func(tx *bbolt.Tx) error {
					if fail.Load() {
						return test.fail(tx)
					}
					return tx.Commit()
				},
			}, driver.BoardSpec{})
			mustApply(t, s, postOf(numberedID(1)))
			fail.Store(true)
			posted, refused := uint64(1), driver.Result{}
			for ; refused.Kind == job.NoKind && posted < 1000; posted++ {
				refused = s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(posted + 1))})[0]
			}
			told := refused.Kind == job.Unavailable || refused.Kind == job.QuotaExceeded ||
				test.fatal && refused.Kind == job.OutcomeUnknown // it was on its way to the disk when the checkpoint failed
			if !told || (code.Load() == 1) != test.fatal {
				t.Fatalf("after %d jobs: %v %s, exit code %d", posted, refused.Kind, refused.Message, code.Load())
			}
			if test.fatal {
				wantDead(t, s)
				return
			}
			fail.Store(false)
			hand.turn(time.Minute, time.Minute)
			last := s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(posted))})[0]
			for n := 0; last.Kind != job.NoKind && n < 1000; n++ { // the first may only set the checkpoint off again
				hand.turn(time.Minute, time.Minute)
				last = s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(posted))})[0]
			}
			if err := s.Close(); err != nil || last.Kind != job.NoKind {
				t.Fatalf("with room again: %v %s, %v", last.Kind, last.Message, err)
			}
			s, _ = openBoard(t, path, options{}, driver.BoardSpec{})
			if n := len(scanIDs(t, s)); n != int(posted) {
				t.Errorf("%d jobs are there, want %d", n, posted)
			}
		})
	}
}

// TestNothingSeenTooEarly reads while a record that will fail is under way: it may
// be on the disk already, and nobody may see what it says.
func TestNothingSeenTooEarly(t *testing.T) {
	t.Parallel()
	var fail atomic.Bool
	var s *Store
	seen := make(chan error, 1)
	look := func() error {
		records, err := s.Read(context.Background(), "b", []job.ID{numberedID(2)}, 0)
		if err == nil && records[0].State != job.Unknown {
			err = errors.New("the job is read before it is durable")
		}
		return err
	}
	s, _ = openBoard(t, t.TempDir(), options{
		exit: func(int) {},
		disk: wal.Disk{Sync: func(f *os.File) error {
			if !fail.Load() {
				return wal.SyncData(f)
			}
			seen <- look()
			return syscall.EIO
		}},
	}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	fail.Store(true)
	s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(2))})
	if err := <-seen; err != nil {
		t.Errorf("the read ends with %v", err)
	}
	if err := look(); !errors.Is(err, job.Unavailable) {
		t.Errorf("the read afterwards ends with %v, want Unavailable", err)
	}
}

// TestDamagedWhileOpen takes the file away from under the memory map: every
// access to it is a fault, which must end the process in an orderly way.
func TestDamagedWhileOpen(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		do   func(s *Store) job.Kind
		want job.Kind
	}{
		{"read", func(s *Store) job.Kind {
			_, err := s.Read(t.Context(), "b", []job.ID{numberedID(1)}, 0)
			return job.KindOf(err)
		}, job.Unavailable},
		{"write", func(s *Store) job.Kind {
			return s.Apply(t.Context(), "b", []driver.Op{claimOf(numberedID(1), [16]byte{1})})[0].Kind
		}, job.OutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			var code atomic.Int32
			s, _ := openBoard(t, t.TempDir(), options{exit: func(n int) { code.Store(int32(n)) }}, driver.BoardSpec{})
			mustApply(t, s, postOf(numberedID(1)))
			toFile(t, s)
			if err := os.Truncate(s.folder.file(), 0); err != nil {
				t.Fatal(err)
			}
			if got := test.do(s); got != test.want || code.Load() != 1 {
				t.Errorf("the answer is %v and the exit code %d, want %v and 1", got, code.Load(), test.want)
			}
			if r := s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(3))})[0]; r.Kind != job.Unavailable {
				t.Errorf("the next answer is %v, want UNAVAILABLE", r.Kind)
			}
		})
	}
}

// handClock is a clock that a test turns.
type handClock struct {
	mu         sync.Mutex
	wall, boot time.Duration
}

func (h *handClock) turn(wall, boot time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wall += wall
	h.boot += boot
}

func (h *handClock) clock(id uint64) clock {
	read := func(d *time.Duration) time.Duration {
		h.mu.Lock()
		defer h.mu.Unlock()
		return *d
	}
	return clock{
		wall: func() time.Time { return time.Unix(1_800_000_000, 0).Add(read(&h.wall)) },
		boot: func() time.Duration { return time.Hour + read(&h.boot) },
		id:   id,
	}
}

func leftOf(t *testing.T, s *Store, id job.ID) time.Duration {
	t.Helper()
	records, err := s.Read(t.Context(), "b", []job.ID{id}, 0)
	if err != nil || records[0].Holder == nil {
		t.Fatalf("%+v, %v: want a holder", records, err)
	}
	return records[0].Holder.Remaining
}

func TestLeaseTime(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	hand := &handClock{}
	reopen := func(s *Store, boot uint64) *Store {
		t.Helper()
		if s != nil {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s, _ = openBoard(t, path, options{clock: hand.clock(boot)}, driver.BoardSpec{})
		return s
	}
	check := func(s *Store, what string, want time.Duration) {
		t.Helper()
		if got := leftOf(t, s, numberedID(1)); got != want {
			t.Errorf("%s: %v are left of the lease, want %v", what, got, want)
		}
	}
	s := reopen(nil, 1)
	mustApply(t, s, postOf(numberedID(1)), claimOf(numberedID(1), [16]byte{1})) // a minute
	check(s, "at once", time.Minute)
	hand.turn(time.Hour, 10*time.Second)
	check(s, "the wall clock jumped ahead", 50*time.Second)
	hand.turn(-3*time.Hour, 0)
	check(s, "the wall clock jumped back", 50*time.Second)
	s = reopen(s, 1)
	hand.turn(0, 10*time.Second)
	check(s, "the process began anew", 40*time.Second)

	hand.turn(0, -30*time.Minute) // another boot, which counts from another zero
	s = reopen(s, 2)
	check(s, "the machine began anew", time.Minute)
	hand.turn(0, 20*time.Second)
	check(s, "later in this boot", 40*time.Second)
	mustApply(t, s, postOf(numberedID(2)))
	s = reopen(s, 2)
	check(s, "the process began anew in this boot", 40*time.Second)
	hand.turn(0, 41*time.Second)
	if r := mustApply(t, s, claimOf(numberedID(1), [16]byte{2})); r[0].Claims[0].Token.Nonce != [16]byte{2} {
		t.Errorf("the lapsed job was not claimed again: %+v", r)
	}
}

// TestWindowAndWallClock checks that a wall clock that jumps ahead does not
// make the board forget.
func TestWindowAndWallClock(t *testing.T) {
	t.Parallel()
	hand := &handClock{}
	s, _ := openBoard(t, t.TempDir(), options{clock: hand.clock(1)}, driver.BoardSpec{Window: time.Minute})
	mustApply(t, s, postOf(numberedID(1)), driver.Op{Kind: driver.Remove, Job: numberedID(1)})
	state := func() job.State {
		records, err := s.Read(t.Context(), "b", []job.ID{numberedID(1)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return records[0].State
	}
	hand.turn(time.Hour, time.Second)
	mustApply(t, s, postOf(numberedID(2)))
	if got := state(); got != job.Complete {
		t.Errorf("after a jump of the wall clock the job is %v, want COMPLETE", got)
	}
	hand.turn(0, time.Minute)
	if got := state(); got != job.Unknown {
		t.Errorf("after the window the job is %v, want UNKNOWN", got)
	}
	mustApply(t, s, postOf(numberedID(3)))
	if n, err := s.Count(t.Context(), "b"); err != nil || n.Ended != 0 {
		t.Errorf("%d ended jobs are kept, %v: want none", n.Ended, err)
	}
}

// TestRollback puts a copy of the file back.
func TestRollback(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s, first := openBoard(t, path, options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)), postOf(numberedID(2)))
	claim := mustApply(t, s, claimOf(numberedID(2), [16]byte{2}))[0].Claims[0]
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	backup, err := os.ReadFile(filepath.Join(path, dataFile))
	if err != nil {
		t.Fatal(err)
	}
	s, status := openBoard(t, path, options{}, driver.BoardSpec{Witness: first.Witness})
	if status.Loss != "" || status.Generation != 1 {
		t.Errorf("nothing was lost, and the status is %+v", status)
	}
	mustApply(t, s, consumeOf(numberedID(2), claim.Token), postOf(numberedID(3)))
	status, err = s.OpenBoard(t.Context(), driver.BoardSpec{Name: "b"})
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, dataFile), backup, 0o600); err != nil {
		t.Fatal(err)
	}
	s, after := openBoard(t, path, options{}, driver.BoardSpec{Witness: status.Witness})
	if after.Loss == "" || after.Generation != 2 || after.Position <= status.Position {
		t.Errorf("put back to an earlier time, the status is %+v: want a loss, generation 2 and a position above %d", after, status.Position)
	}
	for step, err := range s.Watch(t.Context(), "b", status.Position) {
		if err != nil || !step.Resync {
			t.Errorf("a watch from before the loss gives %+v, %v: want Resync", step, err)
		}
		break
	}
	fresh := mustApply(t, s, claimOf(numberedID(1), [16]byte{1}))[0].Claims[0].Token
	if fresh.Generation != 2 || fresh.Epoch <= claim.Token.Epoch {
		t.Errorf("the next token is %+v: want generation 2 and an epoch above %d", fresh, claim.Token.Epoch)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, again := openBoard(t, path, options{}, driver.BoardSpec{Witness: after.Witness}); again.Loss != "" || again.Generation != 2 {
		t.Errorf("opened again, the status is %+v: want generation 2 to stay and no loss", again)
	}
	if _, other := openBoard(t, t.TempDir(), options{}, driver.BoardSpec{Witness: after.Witness}); other.Loss == "" || other.Generation != 3 {
		t.Errorf("in another store the status is %+v: want a loss and generation 3", other)
	}
}

func TestObserve(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s, _ := openBoard(t, path, options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(path, dataFile))
	if err != nil {
		t.Fatal(err)
	}
	s, status := openBoard(t, path, options{}, driver.BoardSpec{Observe: true, Witness: memory{position: 99, generation: 4}.encode()})
	if status.Loss == "" || status.Generation != 5 {
		t.Errorf("the status is %+v: want a loss and generation 5", status)
	}
	if r := s.Apply(t.Context(), "b", []driver.Op{postOf(numberedID(2))})[0]; r.Kind != job.Precondition {
		t.Errorf("a post gives %v, want FAILED_PRECONDITION", r.Kind)
	}
	if _, err := s.Documents().Put(t.Context(), driver.Space{Board: "b", Name: "x"}, driver.Document{Name: "n"}, 0); !errors.Is(err, job.Precondition) {
		t.Errorf("a document gives %v, want Precondition", err)
	}
	if err := s.DropBoard(t.Context(), "b"); !errors.Is(err, job.Precondition) {
		t.Errorf("dropping it gives %v, want Precondition", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(path, dataFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the file was changed: %v", err)
	}
}

// TestDropAndMakeAgain checks that a board of the same name issues no token
// and no position a second time.
func TestDropAndMakeAgain(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	s, _ := openBoard(t, path, options{}, driver.BoardSpec{})
	mustApply(t, s, postOf(numberedID(1)))
	token := mustApply(t, s, claimOf(numberedID(1), [16]byte{1}))[0].Claims[0].Token
	if err := errors.Join(s.DropBoard(t.Context(), "b"), s.Close()); err != nil {
		t.Fatal(err)
	}
	s, status := openBoard(t, path, options{}, driver.BoardSpec{})
	if n, err := s.Count(t.Context(), "b"); err != nil || n.Open != 0 {
		t.Errorf("%+v, %v: want an empty board", n, err)
	}
	if uint64(status.Position) < token.Epoch {
		t.Errorf("the board begins at position %d, below the token's epoch %d", status.Position, token.Epoch)
	}
	mustApply(t, s, postOf(numberedID(1)))
	if again := mustApply(t, s, claimOf(numberedID(1), [16]byte{1}))[0].Claims[0].Token; again.Epoch <= token.Epoch {
		t.Errorf("the epoch %d comes after %d", again.Epoch, token.Epoch)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "deep", "down")
	s := openStore(t, path, options{})
	defer s.Close()
	for name, want := range map[string]os.FileMode{path: 0o700, s.folder.file(): 0o600, filepath.Join(path, lockFile): 0o600} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", name, info, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(path, newFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", newFile, err)
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	program := Program()
	if problems := program.Info.Config.Check([]byte(`{"pth":"x"}`)); len(problems) != 1 {
		t.Errorf("a misspelt setting gives %v", problems)
	}
	if _, err := program.Open(t.Context(), driver.Config{}); !errors.Is(err, job.Invalid) || !strings.Contains(err.Error(), "path is missing") {
		t.Errorf("without a path: %v", err)
	}
	path := t.TempDir()
	d, err := program.Open(t.Context(), driver.Config{Settings: []byte(`{"path":"` + path + `"}`), DataDir: "/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(path, dataFile)); err != nil {
		t.Error(err)
	}
}

// TestCanceledInQueue checks that what has not begun is taken back, and that it
// leaves nothing behind.
func TestCanceledInQueue(t *testing.T) {
	t.Parallel()
	entered, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s, _ := openBoard(t, t.TempDir(), options{commit: func(tx *bbolt.Tx) error {
		once.Do(func() {
			close(entered)
			<-goOn
		})
		return tx.Commit()
	}}, driver.BoardSpec{})
	first := make(chan driver.Result, 1)
	go func() { first <- s.Apply(context.Background(), "b", []driver.Op{postOf(numberedID(1))})[0] }()
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan driver.Result, 1)
	go func() { second <- s.Apply(ctx, "b", []driver.Op{postOf(numberedID(2))})[0] }()
	cancel()
	if r := <-second; r.Kind != job.Interrupted {
		t.Errorf("the waiting op ends with %v, want INTERRUPTED", r.Kind)
	}
	close(goOn)
	if r := <-first; r.Kind != job.NoKind {
		t.Errorf("the op under way ends with %v", r.Kind)
	}
	mustApply(t, s, postOf(numberedID(3)))
	if ids := scanIDs(t, s); len(ids) != 2 {
		t.Errorf("%d jobs, want 2", len(ids))
	}
}
