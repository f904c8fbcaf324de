package store

import (
	"context"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/boardd/boardd/sdk/driver"
	"github.com/boardd/boardd/sdk/sleep"
)

// News are what other drivers on the store are to be told: which boards were changed,
// and documents of which spaces.
type news struct {
	mu         sync.Mutex
	boards     map[int64]bool
	documents  bool            // some were changed:
	spaces     map[string]bool // those of the spaces that have these words,
	everySpace bool            // or of any
	wake       chan struct{}   // has room for one

	deaf bool      // what was told did not come back: a pool of connections may be in between
	told time.Time // when something was told that has not come back; zero: nothing
}

// add notes a change of a board that was committed.
func (n *news) add(board int64) {
	n.mu.Lock()
	n.boards[board] = true
	n.mu.Unlock()
	n.ring()
}

// addSpace notes a change of documents of a space that was committed.
func (n *news) addSpace(space driver.Space) {
	n.mu.Lock()
	n.documents = true
	if n.spaces[wordOf(space)] = true; len(n.spaces) > maxSpaces {
		n.everySpace = true
		clear(n.spaces)
	}
	n.mu.Unlock()
	n.ring()
}

// addSpaces notes a change of documents of any space that was committed.
func (n *news) addSpaces() {
	n.mu.Lock()
	n.documents, n.everySpace = true, true
	n.mu.Unlock()
	n.ring()
}

// ring says that there is something to tell.
func (n *news) ring() {
	select {
	case n.wake <- struct{}{}:
	default: // it is said already
	}
}

// How often what is told and asked.
const (
	tellEvery  = 10 * time.Millisecond  // one notification takes a lock of the whole server
	askEvery   = time.Second            // where notifications come
	askDeaf    = 25 * time.Millisecond  // where they do not
	deafAfter  = 2 * time.Second        // a notification that has not come back by then
	listenWait = 250 * time.Millisecond // before what failed is tried again
)

// maxNews is how long a notification may be; PostgreSQL's bound is 8000 bytes.
const maxNews = 7000

// maxSpaces is of how many spaces one notification tells by their words.
const maxSpaces = 128

// What a notification has for documents. Programs of before the words of spaces know the
// first alone, and look into all of them; such a one says no more, and then any was changed.
const (
	wordOfDocuments = "d"
	wordOfSpace     = "d:"
)

// wordOf is the word of a space. Two spaces may have the same: then somebody looks in vain.
func wordOf(space driver.Space) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(space.Board + "\x00" + space.Name)) // never fails
	return wordOfSpace + strconv.FormatUint(h.Sum64(), 36)
}

// take returns what is to be told, as a notification, and leaves what does not fit.
func (n *news) take() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var text strings.Builder
	if n.documents {
		text.WriteString(" " + wordOfDocuments)
		if !n.everySpace {
			for word := range n.spaces {
				text.WriteString(" " + word)
			}
		}
		n.documents, n.everySpace = false, false
		clear(n.spaces)
	}
	for id := range maps.Keys(n.boards) {
		if text.Len() > maxNews {
			n.ring()
			break
		}
		text.WriteString(" " + strconv.FormatInt(id, 10))
		delete(n.boards, id)
	}
	if text.Len() > 0 && n.told.IsZero() {
		n.told = time.Now()
	}
	return text.String()
}

// channel is where the drivers on the store tell each other.
func (s *store) channel() string { return "boardd_" + hex.EncodeToString(s.id[:]) }

// announce tells other drivers, in transactions of its own, which nobody waits for: the
// end of one that notifies takes a lock which all others of the server want as well.
func (s *store) announce(ctx context.Context) {
	for {
		select {
		case <-s.news.wake:
		case <-ctx.Done():
			return
		}
		text := s.news.take()
		if text == "" {
			continue
		}
		queue := &pgx.Batch{}
		queue.Queue("BEGIN")
		queue.Queue("SET LOCAL synchronous_commit = off") // it writes nothing
		queue.Queue("SELECT pg_notify($1, $2)", s.channel(), text)
		queue.Queue("COMMIT")
		err := s.within(ctx, func(ctx context.Context) error { return s.pool.SendBatch(ctx, queue).Close() })
		if err != nil && ctx.Err() == nil {
			s.log.Debug("other servers were not told of changes, and have to ask", "error", err)
		}
		if sleep.For(ctx, tellEvery) != nil {
			return
		}
	}
}

// listen hears what other drivers tell, and itself.
func (s *store) listen(ctx context.Context, config *pgx.ConnConfig) {
	for ctx.Err() == nil {
		err := s.hear(ctx, config)
		s.news.setDeaf(true)
		if ctx.Err() == nil {
			s.log.Debug("notifications of PostgreSQL are not heard just now", "error", err)
		}
		if errors.Is(err, errPooler) {
			s.log.Info("a pool of connections is in front of PostgreSQL: nothing is heard through it, so this driver asks what is new", "every", askDeaf)
			return
		}
		if sleep.For(ctx, listenWait) != nil {
			return
		}
	}
}

func (s *store) hear(ctx context.Context, config *pgx.ConnConfig) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer func() { _ = s.within(context.WithoutCancel(ctx), conn.Close) }()
	if err := s.within(ctx, func(ctx context.Context) error { return s.beginToHear(ctx, conn) }); err != nil {
		return err
	}
	s.ringAll() // what was told before is not heard any more
	for {
		notice, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		s.news.setDeaf(false)
		s.heard(notice.Payload)
	}
}

// heard wakes those who watch what a notification tells of.
func (s *store) heard(text string) {
	documents, named, watched := false, false, false
	var boards []int64
	for word := range strings.FieldsSeq(text) {
		if word == wordOfDocuments {
			documents = true
		} else if strings.HasPrefix(word, wordOfSpace) {
			named, watched = true, watched || s.feed.watches(word)
		} else if id, err := strconv.ParseInt(word, 10, 64); err == nil {
			boards = append(boards, id)
		}
	}
	s.ring(boards)
	if documents && (watched || !named) {
		s.feed.ring()
	}
}

func (s *store) beginToHear(ctx context.Context, conn *pgx.Conn) error {
	if err := s.pooler.meet(ctx, conn); err != nil {
		return err
	}
	if s.pooler.found.Load() { // a session that was told to listen is another one's at once, and hears for nobody
		return errPooler
	}
	_, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel()}.Sanitize())
	return err
}

// setDeaf notes whether notifications are heard.
func (n *news) setDeaf(deaf bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deaf = deaf
	n.told = time.Time{}
}

// isDeaf reports whether notifications do not come.
func (n *news) isDeaf() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.told.IsZero() && time.Since(n.told) > deafAfter {
		n.deaf = true
	}
	return n.deaf
}

// ring wakes who watches some of the boards with these numbers.
func (s *store) ring(numbers []int64) {
	if len(numbers) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range numbers {
		if b := s.taken[id]; b != nil {
			b.watch.Ring()
		}
	}
	for _, b := range s.looked { // their numbers may be any
		b.watch.Ring()
	}
}

func (s *store) ringAll() {
	s.feed.ring()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.boards {
		b.watch.Ring()
	}
}

// followOthers asks now and then whether there is something new that nobody told of: a
// driver may have been killed before it did.
func (s *store) followOthers(ctx context.Context) {
	f := follower{store: s, seen: map[int64]int64{}}
	for {
		every := askEvery
		if s.news.isDeaf() {
			every = askDeaf
		}
		if sleep.For(ctx, every) != nil {
			return
		}
		if err := s.within(ctx, f.ask); err != nil && ctx.Err() == nil {
			s.log.Debug("PostgreSQL cannot be asked what is new", "error", err)
			if sleep.For(ctx, listenWait) != nil { // a server that is away or starts is not to be hurried
				return
			}
		}
	}
}

// A follower remembers what there was when it asked last.
type follower struct {
	*store
	positions, changes int64           // numbers of those of boards, and of documents, that were given out
	stillDocuments     int             // how often none of documents was, since then
	still              int             // how often no position was
	seen               map[int64]int64 // positions of boards
}

// How often there is a look though no number was given out since the last one. A number
// is there before what it is for can be seen: a commit may take its time.
const (
	lookAgain = 3
	lookNow   = 10 // every so often, whatever the numbers say
)

func (f *follower) ask(ctx context.Context) error {
	var p, c int64
	err := f.pool.QueryRow(ctx, f.sql(`SELECT p.last_value, c.last_value FROM {s}.positions p, {s}.document_change_numbers c`)).Scan(&p, &c)
	if err != nil {
		return err
	}
	if f.still++; p != f.positions {
		f.positions, f.still = p, 0
	}
	if f.stillDocuments++; c != f.changes {
		f.changes, f.stillDocuments = c, 0
	}
	if f.stillDocuments < lookAgain || f.stillDocuments%lookNow == 0 {
		f.feed.ring()
	}
	if f.still < lookAgain || f.still%lookNow == 0 {
		return f.askBoards(ctx)
	}
	return nil
}

// askBoards wakes the watchers of boards that have come on.
func (f *follower) askBoards(ctx context.Context) error {
	watched := f.watched()
	if len(watched) == 0 {
		return nil
	}
	rows, err := f.pool.Query(ctx, f.sql(`SELECT u.board, coalesce((SELECT position FROM {s}.batches WHERE board = u.board ORDER BY position DESC LIMIT 1), -1)
		FROM unnest($1::bigint[]) u (board)`), watched)
	if err != nil {
		return err
	}
	seen := make(map[int64]int64, len(watched))
	var changed []int64
	var id, position int64
	_, err = pgx.ForEachRow(rows, []any{&id, &position}, func() error {
		if seen[id] = position; f.seen[id] != position || id == 0 { // an observed board's number may be any
			changed = append(changed, id)
		}
		return nil
	})
	if f.ring(changed); err == nil {
		f.seen = seen
	}
	return err
}

// watched are the boards that somebody watches here.
func (s *store) watched() (ids []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.boards {
		if b.watch.watchers.Load() > 0 {
			ids = append(ids, b.id)
		}
	}
	return ids
}
