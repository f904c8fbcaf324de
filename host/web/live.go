package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// How often a page hears of changes at most, how often it hears that there were
// none, and how many may listen at once. Each page that hears of a change fetches
// itself: so where many look at one board each hears less often, and one after the
// other, and the board has so many fetches a second at most however many look.
const (
	livePace  = time.Second
	liveShare = 40 * time.Millisecond // of the pace for each page
	liveBeat  = 20 * time.Second
	liveLook  = 500 * time.Millisecond // whether the visit still stands
	maxLives  = 5000
	liveWrite = 10 * time.Second // for one message, and for asking what was missed
)

// lives tell pages that their board has changed. However many pages look at a
// board, it is watched once, and only while somebody looks.
type lives struct {
	mu      sync.Mutex
	byBoard map[*board.Board]*live
	pages   int
	over    bool // nobody begins to look any more

	following sync.WaitGroup // added to under mu, and only before over: Wait may miss none
}

// live is one board that is looked at.
type live struct {
	stop  context.CancelFunc
	begun chan struct{} // closed when nothing is missed any more

	// Guarded by lives.mu.
	pages  int
	came   int           // pages so far
	told   uint64        // how often a change was told of
	change chan struct{} // closed at the next one
}

func newLives() *lives { return &lives{byBoard: map[*board.Board]*live{}} }

// join begins to look at a board, as the n-th; leave ends it. There is none if too
// many look, or after end.
func (s *lives) join(b *board.Board) (l *live, n int, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || s.pages >= maxLives {
		return nil, 0, nil
	}
	l = s.byBoard[b]
	if l == nil {
		ctx, stop := context.WithCancel(context.Background())
		l = &live{stop: stop, begun: make(chan struct{}), change: make(chan struct{})}
		s.byBoard[b] = l
		s.following.Go(func() { s.follow(ctx, b, l) })
	}
	n = l.came
	l.came++
	l.pages++
	s.pages++
	return l, n, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pages--
		if l.pages--; l.pages == 0 {
			l.stop()
			delete(s.byBoard, b)
		}
	}
}

// end lets nobody begin to look any more, and waits until those who do have left.
func (s *lives) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.following.Wait()
}

// next returns how often a change was told of, and what is closed at the next
// one.
func (s *lives) next(l *live) (told uint64, change <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.told, l.change
}

// follow tells of changes, at most once a pace, until nobody looks.
func (s *lives) follow(ctx context.Context, b *board.Board, l *live) {
	dirty := make(chan struct{}, 1)
	var reading sync.WaitGroup
	reading.Go(func() { notice(ctx, b, sync.OnceFunc(func() { close(l.begun) }), dirty) })
	defer reading.Wait()
	for {
		select {
		case <-dirty:
		case <-ctx.Done():
			return
		}
		if sleep.For(ctx, s.tell(l)) != nil {
			return
		}
	}
}

// notice marks that something has changed, for as long as ctx lasts. Events are
// read as fast as they come, so that a page never lags behind a busy board. begun
// is called when it is sure to hear of everything that comes.
func notice(ctx context.Context, b *board.Board, begun func(), dirty chan<- struct{}) {
	for ctx.Err() == nil {
		for event, err := range b.Watch(ctx, "") {
			if err != nil {
				break
			}
			begun()
			if event.Type == job.Heartbeat {
				continue
			}
			select {
			case dirty <- struct{}{}:
			default:
			}
		}
		if sleep.For(ctx, livePace) != nil {
			return
		}
		select {
		case dirty <- struct{}{}: // something may have been missed
		default:
		}
	}
}

// tell tells of a change, and returns for how long of none after it.
func (s *lives) tell(l *live) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.told++
	close(l.change)
	l.change = make(chan struct{})
	return max(livePace, time.Duration(l.pages)*liveShare)
}

// turn returns how long after a change a page is told of it, which is the n-th that
// came to look.
func (s *lives) turn(l *live, n int) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(n%max(l.pages, 1)) * liveShare
}

// streamPath is the pattern of livePath.
const streamPath = "/ui/boards/{board}/live"

// livePath is where a page learns of what happens on a board after a cursor,
// which must have been read before anything that the page shows.
func livePath(boardName, cursor string) string {
	return "/ui/boards/" + url.PathEscape(boardName) + "/live?from=" + url.QueryEscape(cursor)
}

// present returns the cursor of a board's present.
func present(ctx context.Context, b *board.Board) (string, error) {
	_, cursor, err := b.Events(ctx, "", 1, 0)
	return cursor, err
}

// missed reports whether something happened on a board after a cursor, or may
// have.
func missed(ctx context.Context, b *board.Board, cursor string) bool {
	ctx, cancel := context.WithTimeout(ctx, liveWrite)
	defer cancel()
	events, _, err := b.Events(ctx, cursor, 1, 0)
	return err != nil || len(events) > 0
}

// live streams a line each time the board has changed since the page was drawn,
// until the page is left, its visitor is signed out, or the board is taken away: then
// the browser connects again, to what is in its place.
func (u *UI) live(w http.ResponseWriter, r *http.Request, v *visit) {
	shown, err := v.session.Show(r.Context(), r.PathValue("board"))
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	defer shown.Release()
	l, n, leave := u.lives.join(shown.Board)
	if l == nil {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "the page cannot be kept up to date now: too many others are, or the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	// A browser that was cut off says which change it heard of last.
	from := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("from"))
	s := &stream{ui: u, writer: w, request: r, visit: v, board: shown.Board, gone: shown.Gone, live: l, n: n}
	w.Header().Set("Content-Type", "text/event-stream")
	if s.begin(from) {
		s.follow()
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(liveWrite)) // for the end of the stream
}

// stream is one page that is kept up to date.
type stream struct {
	ui      *UI
	writer  http.ResponseWriter
	request *http.Request
	visit   *visit
	board   *board.Board
	gone    <-chan struct{} // closed when nobody follows the board any more
	live    *live
	n       int    // it is the n-th that came to look
	seen    uint64 // of the live's changes
}

// begin waits until no change is missed any more, and tells of those that were
// since the cursor.
func (s *stream) begin(from string) bool {
	select {
	case <-s.live.begun:
	case <-s.gone:
		return false
	case <-s.request.Context().Done():
		return false
	case <-s.ui.stopping:
		return false
	}
	s.seen, _ = s.ui.lives.next(s.live) // first: what comes now is told of anyway
	if !s.send("begun") {
		return false
	}
	return from == "" || !missed(s.request.Context(), s.board, from) || s.send("changed")
}

func (s *stream) follow() {
	beat, look := time.NewTicker(liveBeat), time.NewTicker(liveLook)
	defer beat.Stop()
	defer look.Stop()
	for {
		told, change := s.ui.lives.next(s.live)
		text := ""
		if told != s.seen {
			if sleep.For(s.request.Context(), s.ui.lives.turn(s.live, s.n)) != nil {
				return
			}
			s.seen, text = told, "changed"
		} else {
			select {
			case <-change:
				continue
			case <-beat.C:
				text = "beat"
			case <-look.C:
			case <-s.gone:
				return
			case <-s.request.Context().Done():
				return
			case <-s.ui.stopping:
				return
			}
		}
		if !s.ui.visits.stands(s.visit) {
			s.send("over")
			return
		}
		if text != "" && !s.send(text) {
			return
		}
	}
}

// send writes one message. Its id is the board's present, which is where a browser
// goes on that was cut off.
func (s *stream) send(text string) bool {
	controller := http.NewResponseController(s.writer)
	_ = controller.SetWriteDeadline(time.Now().Add(liveWrite)) // what takes no deadline is not a network
	id := ""
	if text == "changed" {
		ctx, cancel := context.WithTimeout(s.request.Context(), livePace)
		defer cancel()
		if at, err := present(ctx, s.board); err == nil {
			id = "id: " + at + "\n"
		}
	}
	if _, err := fmt.Fprintf(s.writer, "event: %s\n%sdata:\n\n", text, id); err != nil || controller.Flush() != nil {
		return false
	}
	_ = controller.SetWriteDeadline(time.Time{}) // on HTTP/2 one that passes before the next message ends the stream
	return true
}
