package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/job"
)

//go:embed schema.sql
var schema string

// A store is one file. Everything is decided in its transactions, and nothing is
// remembered beside it but how boards were opened: so several processes may have it
// open at once, and one that is killed leaves nothing half done.
type store struct {
	db     *sql.DB       // many connections, for reading
	writer *sql.Conn     // the one that writes
	turn   chan struct{} // held by who writes: a queue, where SQLite's own lock has none
	id     [8]byte       // of the file
	boot   string        // see bootName
	bell   poll.Bell     // rings when something was committed, here or elsewhere
	end    context.CancelFunc
	ends   sync.WaitGroup

	mu     sync.Mutex
	reads  map[string]*sql.Stmt // prepared for reading
	writes map[string]*sql.Stmt // prepared on writer
	boards map[string]*board    // those that are open here
}

// open opens the file, and makes it if it is not there.
func open(ctx context.Context, c driver.Config) (driver.Driver, error) {
	var settings struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal([]byte(cmp.Or(string(c.Settings), "{}")), &settings); err != nil {
		return nil, job.Errorf(job.Invalid, "the settings cannot be read: %v", err)
	}
	if settings.Path == "" {
		if c.DataDir == "" {
			return nil, job.Errorf(job.Invalid, "the setting path is needed here, since boardd has no data_dir")
		}
		settings.Path = filepath.Join(c.DataDir, "boards.sqlite")
	}
	s, err := openFile(ctx, settings.Path)
	if err != nil {
		return nil, &job.Error{Kind: job.Unavailable, Err: fmt.Errorf("%s: %w", settings.Path, err)}
	}
	return s, nil
}

// pragmas are the settings of each connection. What is acknowledged has to survive
// power loss: synchronous is FULL. With a write-ahead log nobody sees a commit before
// it is on the disk, and readers and the writer do not wait for each other.
var pragmas = url.Values{"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(ON)"}}

func openFile(ctx context.Context, path string) (*store, error) {
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: pragmas.Encode()}).String())
	if err != nil {
		return nil, err
	}
	s := &store{
		db: db, turn: make(chan struct{}, 1),
		reads: map[string]*sql.Stmt{}, writes: map[string]*sql.Stmt{}, boards: map[string]*board{},
	}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	var polling context.Context
	polling, s.end = context.WithCancel(context.Background())
	s.ends.Go(func() { s.listen(polling) })
	return s, nil
}

// begin makes the tables, and the file's id: it has to be there before the first board
// is opened, or a file that was lost before its first change would not be missed.
func (s *store) begin(ctx context.Context) (err error) {
	if s.boot, err = bootName(); err != nil {
		return err
	}
	if s.writer, err = s.db.Conn(context.Background()); err != nil {
		return err
	}
	var fresh [8]byte
	_, _ = rand.Read(fresh[:]) // never fails
	return s.write(ctx, func(q *session) error {
		if _, err := s.writer.ExecContext(ctx, schema); err != nil {
			return err
		}
		q.exec("INSERT INTO store SELECT ? WHERE NOT EXISTS (SELECT 1 FROM store)", fresh[:])
		var id []byte
		if q.row(into(&id), "SELECT id FROM store") {
			s.id = [8]byte(id)
		}
		return nil
	})
}

// elsewhere is how soon a change that another process made is seen.
const elsewhere = 20 * time.Millisecond

// listen rings for what other processes change. SQLite tells that there was something;
// a database with notifications would say what.
func (s *store) listen(ctx context.Context) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return // ctx ended
	}
	defer func() { _ = conn.Close() }()
	tick := time.NewTicker(elsewhere)
	defer tick.Stop()
	for last := int64(0); ; {
		var version int64
		if conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version) == nil && version != last {
			last = version
			s.bell.Ring()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *store) Close() error {
	s.end()
	s.bell.Close()
	s.ends.Wait()
	return errors.Join(s.writer.Close(), s.db.Close())
}

// Health asks for something that has to be read from the file.
func (s *store) Health(ctx context.Context) error {
	return s.read(ctx, func(q *session) error {
		q.row(into(new([]byte)), "SELECT id FROM store")
		return nil
	})
}
