package store

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/plugins/zookeeper/session"
	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/driver/poll"
	"github.com/boardd/boardd/sdk/job"
)

// Store is the driver over one session.
type Store struct {
	client    *session.Client
	settings  settings
	options   Options
	log       *slog.Logger
	clock     clock
	documents *documents
	size      *poll.Figure // of a server's data
	closing   context.CancelFunc
	life      context.Context //nolint:containedctx // it ends what Open started, at Close

	mu     sync.Mutex
	boards map[string]*board
}

func newStore(client *session.Client, s settings, o Options, log *slog.Logger) *Store {
	if o.Events == 0 {
		o.Events = defaultEvents
	}
	if o.LogNumbers == 0 {
		o.LogNumbers = defaultLogNumbers
	}
	st := &Store{client: client, settings: s, options: o, log: log, boards: map[string]*board{}}
	st.life, st.closing = context.WithCancel(context.Background())
	st.documents = &documents{store: st, reapAfter: reapAfter}
	st.size = poll.NewFigure(sizeEvery, st.dataSize)
	return st
}

// OpenBoard loads a board, or tells how an open one stands.
func (s *Store) OpenBoard(ctx context.Context, spec driver.BoardSpec) (driver.BoardStatus, error) {
	if err := alive(ctx); err != nil {
		return driver.BoardStatus{}, err
	}
	settings, at, err := readBoardSettings(&spec, s.settings.root)
	if err != nil {
		return driver.BoardStatus{}, err
	}
	if spec.Window <= 0 {
		spec.Window = driver.DefaultWindow
	}
	if spec.MaxTombstones <= 0 || spec.MaxTombstones > MaxTombstones {
		spec.MaxTombstones = MaxTombstones
	}
	if spec.MaxFinals <= 0 || spec.MaxFinals > MaxFinals {
		spec.MaxFinals = MaxFinals
	}
	s.mu.Lock()
	b := s.boards[spec.Name]
	if b != nil && b.at != at {
		delete(s.boards, spec.Name)
		s.mu.Unlock()
		b.end()
		s.mu.Lock()
		b = s.boards[spec.Name]
	}
	if b == nil {
		b = newBoard(s, spec.Name, at)
		s.boards[spec.Name] = b
		b.configure(spec, settings)
		b.start()
	} else {
		b.configure(spec, settings)
	}
	s.mu.Unlock()
	defer b.opened()
	return b.open(ctx, spec.Witness, uint64(spec.Seen))
}

// board returns an open board.
func (s *Store) board(name string) (*board, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.boards[name]
	if b == nil {
		return nil, notOpen(name)
	}
	return b, nil
}

// ready returns an open board that is loaded.
func (s *Store) ready(ctx context.Context, name string) (*board, error) {
	b, err := s.board(name)
	if err == nil {
		err = alive(ctx)
	}
	if err == nil {
		err = b.ready(ctx)
	}
	return b, err
}

func notOpen(name string) error {
	return job.Errorf(job.Precondition, "board %q is not open: open it first", name)
}

// alive returns the end of ctx as an error of the contract.
func alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &job.Error{Kind: job.Interrupted, Err: err}
	}
	return nil
}

// Documents returns the small records.
func (s *Store) Documents() driver.Documents { return s.documents }

// Health asks ZooKeeper for the root.
func (s *Store) Health(ctx context.Context) error {
	_, err := s.client.Exists(ctx, s.settings.root)
	return err
}

// Measure is Health, and gives what a server says of its data, if it answers the word mntr.
func (s *Store) Measure(ctx context.Context) (driver.Usage, error) {
	if err := s.Health(ctx); err != nil {
		return driver.Usage{}, err
	}
	return driver.Usage{Used: s.size.Value()}, nil
}

var _ driver.Measurer = (*Store)(nil)

// sizeEvery is how often a server is asked how large its data are, which costs a connection.
const sizeEvery = 15 * time.Second

// dataSize asks a server how large its data are, paths included: each has all of them.
func (s *Store) dataSize(ctx context.Context) (int64, error) {
	answer, err := s.client.Word(ctx, "mntr")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(answer, "zk_approximate_data_size\t")
	number, _, _ := strings.Cut(rest, "\n")
	return strconv.ParseInt(number, 10, 64) // of a server that may not say there is none
}

// Close ends the streams, waits for what is under way and ends the session.
func (s *Store) Close() error {
	s.mu.Lock()
	boards := s.boards
	s.boards = map[string]*board{}
	s.mu.Unlock()
	for _, b := range boards {
		b.finish()
	}
	s.closing()
	s.size.Close()
	for _, b := range boards {
		b.end()
	}
	s.client.Close()
	return nil
}
