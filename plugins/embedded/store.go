package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"github.com/boardd/boardd/plugins/embedded/wal"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/job"
)

// mapSize is how much address space the file gets at once. A larger file is
// mapped anew, which waits for every reader.
const mapSize = 1 << 30

func boltOptions() *bbolt.Options {
	o := &bbolt.Options{
		Timeout: lockWait,
		// The list of free pages would be written whole by every commit, and
		// after a large board was emptied it is large. It is found by a walk
		// through the file at open.
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mapSize,
		NoStatistics:    true,
	}
	if runtime.GOOS == "windows" { // where a map makes the file as large as itself
		o.InitialMmapSize = 0
	}
	return o
}

// Store is the driver over one file.
type Store struct {
	folder *folder
	db     *bbolt.DB
	logger *slog.Logger
	clock  clock
	exit   func(int)
	commit commitFunc
	keep   storageLimits

	id       [16]byte
	bootBase time.Duration // see instant.base
	bootKept bool          // it is in the file

	openedWall time.Time // both clocks when the store was opened
	openedBoot time.Duration

	// gate is closed while what is durable becomes visible. Whoever reads begins
	// under it, and so sees the file, what lies over it and the memory of one moment,
	// and nothing that could still be lost.
	gate      sync.RWMutex
	over      overlay // written under the gate, its memtables never change
	committer *committer
	documents *documents
	floor     floor // written under the gate
	dead      atomic.Bool
	fullness  fullness
	closing   chan struct{}
	copying   atomic.Pointer[copying] // nil: no backup is under way
	patience  time.Duration           // see defaultPatience

	// Of whoever writes to the file: the committer, or the checkpoint that it began.
	reached reached
	format  uint64
	lost    lost // the last loss that was found; set when the store is opened
	marker  *marker

	mu      sync.Mutex
	boards  map[string]*board
	numbers map[string]uint32 // of all boards that this process has met, see tableID
	names   []string          // the reverse
}

func open(ctx context.Context, path string, o options) (*Store, error) {
	o = o.filled()
	f, err := openFolder(ctx, path)
	if err != nil {
		return nil, err
	}
	s := &Store{
		folder: f, logger: o.logger, clock: o.clock, exit: o.exit, commit: o.commit, keep: o.limits, patience: o.patience,
		boards: map[string]*board{}, numbers: map[string]uint32{}, names: []string{""}, closing: make(chan struct{}),
		over:       overlay{recent: newMemtable()},
		openedWall: o.clock.wall(), openedBoot: o.clock.boot(),
	}
	s.documents = newDocuments(s)
	if err := s.start(o.disk); err != nil {
		if s.db != nil {
			err = errors.Join(err, s.db.Close())
		}
		return nil, errors.Join(err, s.marker.close(), f.close())
	}
	s.committer = newCommitter(s, wal.New(f.path, s.id, o.disk))
	go s.committer.run()
	return s, nil
}

func (o options) filled() options {
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	if o.clock.boot == nil {
		o.clock = systemClock()
	}
	if o.exit == nil {
		o.exit = os.Exit
	}
	if o.commit == nil {
		o.commit = (*bbolt.Tx).Commit
	}
	if o.patience == 0 {
		o.patience = defaultPatience
	}
	o.limits = o.limits.filled()
	return o
}

// start opens the file, which is looked through first, and puts into it what the
// journal has over it.
func (s *Store) start(d wal.Disk) (err error) {
	if err := s.folder.prepare(s.logger); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &job.Error{Kind: job.Corrupt, Message: s.folder.file() + " cannot be used", Err: fmt.Errorf("%v", p)}
		}
	}()
	if s.db, err = bbolt.Open(s.folder.file(), 0o600, boltOptions()); err != nil {
		return unavailable(fmt.Errorf("%s: %w", s.folder.file(), err))
	}
	if err := s.db.View(s.readHead); err != nil {
		return err
	}
	var was mark
	var marked bool
	if s.marker, was, marked, err = openMarker(s.folder.path, s.logger); err != nil {
		return err
	}
	has, err := s.replay(wal.New(s.folder.path, s.id, d))
	if err != nil {
		return err
	}
	if err := s.audit(was, marked, has); err != nil {
		return err
	}
	if s.format == formatSlim { // before the journal has records that an older program would misread
		if err := s.checkpoint(newMemtable(), s.reached); err != nil {
			return unavailable(fmt.Errorf("%s: %w", s.folder.file(), err))
		}
	}
	return s.db.View(s.readRest)
}

// numberOf returns the number of a board's places.
func (s *Store) numberOf(board string) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.numberLocked(board)
}

// numberLocked is numberOf for a caller that holds s.mu.
func (s *Store) numberLocked(board string) uint32 {
	n := s.numbers[board]
	if n == 0 {
		n = uint32(len(s.names))
		s.numbers[board] = n
		s.names = append(s.names, board)
	}
	return n
}

// nameOf is the reverse of numberOf.
func (s *Store) nameOf(number uint32) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.names[number]
}

func (s *Store) instant() instant {
	at := instant{wall: s.clock.wall(), boot: s.clock.boot(), id: s.clock.id, base: s.bootBase}
	at.steady = at.wall
	if limit := s.openedWall.Add(at.boot - s.openedBoot); limit.Before(at.wall) {
		at.steady = limit
	}
	return at
}

// gone is what is answered when the store is no longer there.
func (s *Store) gone() error {
	if s.dead.Load() {
		return job.Errorf(job.Unavailable, "the store in %s failed; see the log", s.folder.path)
	}
	return job.Errorf(job.Unavailable, "the store in %s is closed", s.folder.path)
}

// read runs fn in a transaction that sees one moment, together with what prime
// takes from memory. Both must be short: they keep old pages from being used
// again, and prime keeps everybody out.
func (s *Store) read(prime func(), fn func(*snapshot) error) (err error) {
	// A page of the map that cannot be read is a panic here, and not the end of
	// the process without a word.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	m, err := s.begin(prime)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = &job.Error{Kind: job.Corrupt, Message: "a page of " + s.folder.file() + " cannot be read", Err: fmt.Errorf("%v", p)}
		}
		if rollback := m.close(); err == nil && rollback != nil {
			err = unavailable(rollback)
		}
	}()
	return fn(m)
}

// begin begins a read under the gate. Where the head of the file cannot be
// read, bbolt is left with its locks held, and nothing can go on.
func (s *Store) begin(prime func()) (m *snapshot, err error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.dead.Load() { // since a commit that this call waited for
		return nil, s.gone()
	}
	defer func() {
		if p := recover(); p != nil {
			m, err = nil, s.fatal(fmt.Errorf("the head of the store cannot be read: %v", p))
		}
	}()
	tx, err := s.db.Begin(false)
	if err != nil {
		return nil, unavailable(err)
	}
	if prime != nil {
		prime()
	}
	return &snapshot{store: s, over: s.over, tx: tx}, nil
}

// fatal ends the process, and where a test keeps it alive the store is dead.
func (s *Store) fatal(err error) error {
	s.logger.Error("the store cannot be trusted any more; this process ends, and the next one reads what is on the disk",
		"path", s.folder.path, "error", err)
	s.dead.Store(true)
	s.exit(1)
	return &job.Error{Kind: job.Unavailable, Message: "the store failed", Err: err}
}

// board returns an open board.
func (s *Store) board(name string) (*board, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boards[name]
	if b == nil || !b.ready.Load() {
		return nil, notOpen(name)
	}
	return b, nil
}

// Documents returns the small records.
func (s *Store) Documents() driver.Documents { return s.documents }

// Health says whether the store still takes changes. QuotaExceeded: only those that
// make no board larger.
func (s *Store) Health(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	select {
	case <-s.closing:
		return s.gone()
	default:
	}
	if s.dead.Load() {
		return s.gone()
	}
	if _, err := os.Stat(s.folder.file()); err != nil {
		return unavailable(err)
	}
	if s.full() {
		return errNoRoom
	}
	return nil
}

// Close ends the streams, lets what is queued finish and closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	select {
	case <-s.closing:
		s.mu.Unlock()
		return nil
	default:
	}
	close(s.closing)
	s.mu.Unlock()
	s.committer.close()
	if c := s.copying.Load(); c != nil {
		c.giveWay() // the file is closed only when nobody reads it
	}
	closing := errors.Join(s.committer.journal.Close(), s.marker.close())
	if s.dead.Load() {
		return s.folder.close() // bbolt may be left in the middle of a transaction
	}
	return errors.Join(closing, s.db.Close(), s.folder.close())
}
