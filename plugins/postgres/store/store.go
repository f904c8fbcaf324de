package store

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/job"
)

// A store is a schema in a database. Everything is decided in its transactions, and
// nothing is remembered beside it but how boards were opened: so several processes may
// have it open at once, and one that is killed leaves nothing half done.
type store struct {
	pool    *pgxpool.Pool
	pooler  pooler
	schema  string
	quoted  string // the schema's name, as SQL has it
	version int    // of the tables that this program works with

	patience  time.Duration // answerWithin, but in tests
	lockTries int           // lockTries, but in tests

	id  [8]byte
	log *slog.Logger

	texts sync.Map // statements by what they are made of
	feed  feed     // tells those who watch documents what was changed
	news  news     // what other drivers are to be told

	full fullDisk

	examined atomic.Bool // the whole database was, on behalf of some board

	mu     sync.Mutex
	boards map[string]*board // those that are open here
	taken  map[int64]*board  // of these, by their numbers, those that may be changed,
	looked map[string]*board // and by their names, those that are only observed

	touched map[int64]bool // the numbers of boards that were opened or dropped since the last look into the inbox, or came to be watched or not
	wakers  wakers

	size *poll.Figure // of the database

	end  context.CancelFunc
	ends sync.WaitGroup
}

// connect makes a store that can reach its database, and has not looked into it.
func connect(ctx context.Context, c driver.Config) (*store, settings, error) {
	settings, err := readSettings(c.Settings)
	if err != nil {
		return nil, settings, err
	}
	s, err := reach(ctx, settings, c.Logger)
	return s, settings, err
}

// reach makes a store, and connects.
func reach(ctx context.Context, settings settings, logger *slog.Logger) (s *store, err error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	settings.pool.ConnConfig.OnNotice = noteWarning
	s = &store{
		schema: settings.schema, quoted: pgx.Identifier{settings.schema}.Sanitize(), version: version,
		patience: answerWithin, lockTries: lockTries, log: logger, boards: map[string]*board{}, taken: map[int64]*board{}, looked: map[string]*board{}, touched: map[int64]bool{},
		news: news{wake: make(chan struct{}, 1), boards: map[int64]bool{}, spaces: map[string]bool{}}, feed: newFeed(),
	}
	s.size = poll.NewFigure(sizeEvery, s.databaseSize)
	if s.pool, err = s.pooler.connect(ctx, settings.pool); err != nil {
		return nil, failed(ctx, err)
	}
	return s, nil
}

// open connects to the server, makes the tables where that is wanted, and begins to
// listen for what others change.
func open(ctx context.Context, c driver.Config) (*store, error) {
	s, settings, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx, settings); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *store) start(ctx context.Context, settings settings) error {
	err := s.prepare(ctx, settings.migrate)
	if err == nil {
		err = s.readChanges(ctx) // of those from now on; who begins to watch reads what there is
	}
	if err != nil {
		s.pool.Close()
		return err
	}
	s.follow(settings)
	return nil
}

// follow begins to listen for what others change, until Close.
func (s *store) follow(settings settings) {
	var working context.Context
	working, s.end = context.WithCancel(context.Background())
	s.ends.Go(func() { s.listen(working, settings.pool.ConnConfig.Copy()) })
	s.ends.Go(func() { s.announce(working) })
	s.ends.Go(func() { s.followOthers(working) })
	s.ends.Go(func() { s.followDocuments(working) })
	s.ends.Go(func() { s.followInbox(working) })
	s.ends.Go(func() { s.reapForever(working) })
}

// sql returns a statement on the store's schema, which {s} stands for.
func (s *store) sql(text string) string {
	if made, ok := s.texts.Load(text); ok {
		return made.(string) //nolint:forcetypeassert // there is nothing else in it
	}
	made := strings.ReplaceAll(text, "{s}", s.quoted)
	s.texts.Store(text, made)
	return made
}

// unsynced is under which a connection notes that a commit was not as safe as the
// server is told to make it.
const unsynced = "boardd-unsynced"

// noteWarning notes the warning that a server gives when it stopped waiting for its
// standbys, though the commit stands.
func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" && (n.Code == "01000" || n.Code == "57P01") {
		conn.CustomData()[unsynced] = true
	}
}

// board returns a board that is open here.
func (s *store) board(name string) (*board, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.boards[name]; b != nil {
		return b, nil
	}
	return nil, notOpen(name)
}

// keep has a board be open here in place of the one before; nil: none is. The lock is held.
func (s *store) keep(name string, b *board) (before *board) {
	if before = s.boards[name]; before != nil {
		delete(s.boards, name)
		delete(s.taken, before.id)
		delete(s.looked, name)
		s.touched[before.id] = true
	}
	if b == nil {
		return before
	}
	s.touched[b.id] = true
	if s.boards[name] = b; b.Observe {
		s.looked[name] = b
	} else {
		s.taken[b.id] = b
	}
	return before
}

// Health asks for something that has to be read from the database.
func (s *store) Health(ctx context.Context) error {
	var standby bool
	var off string
	err := s.again(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql(`SELECT pg_is_in_recovery(), current_setting('transaction_read_only') FROM {s}.store`)).Scan(&standby, &off)
	})
	switch {
	case err != nil:
		return failed(ctx, err)
	case standby:
		return job.Errorf(job.Unavailable, "%s", onStandby)
	case off == "on":
		return job.Errorf(job.Unavailable, "%s", meanings[readOnly])
	case s.full.is(time.Now()):
		return job.Errorf(job.QuotaExceeded, noDisk)
	}
	return nil
}

// Measure is Health, and gives the size of the whole database. Its limit is the disk, of which
// the server says nothing.
func (s *store) Measure(ctx context.Context) (driver.Usage, error) {
	err := s.Health(ctx)
	if err != nil && job.KindOf(err) != job.QuotaExceeded {
		return driver.Usage{}, err
	}
	return driver.Usage{Used: s.size.Value()}, err
}

var _ driver.Measurer = (*store)(nil)

// sizeEvery is how often the server is asked how large the database is: it looks at each file.
const sizeEvery = 15 * time.Second

func (s *store) databaseSize(ctx context.Context) (size int64, err error) {
	err = s.pool.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size)
	return size, err
}

// Close ends what the store has begun.
func (s *store) Close() error {
	s.end()
	s.size.Close()
	s.feed.close()
	s.wakers.close()
	s.mu.Lock()
	for _, b := range s.boards {
		b.watch.Close()
	}
	s.mu.Unlock()
	s.ends.Wait()
	s.pool.Close()
	return nil
}
