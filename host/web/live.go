package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/boardd/boardd/host/board"
	"github.com/boardd/boardd/sdk/job"
	"github.com/boardd/boardd/sdk/sleep"
)

// How often pages hear of changes at most, how often they hear that there were
// none, and how many may listen at once.
const (
	livePace  = time.Second
	liveBeat  = 20 * time.Second
	liveLook  = 500 * time.Millisecond // whether the visit still stands
	maxLives  = 5000
	liveWrite = 10 * time.Second // for one message
)

// lives tell pages that their board has changed. However many pages look at a
// board, it is watched once, and only while somebody looks.
type lives struct {
	mu      sync.Mutex
	byBoard map[*board.Board]*live
	pages   int

	following sync.WaitGroup
}

// live is one board that is looked at.
type live struct {
	pages  int
	stop   context.CancelFunc
	change chan struct{} // closed at the next change; guarded by lives.mu
}

func newLives() *lives { return &lives{byBoard: map[*board.Board]*live{}} }

// join begins to look at a board; leave ends it. There is none if too many look.
func (s *lives) join(b *board.Board) (l *live, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pages >= maxLives {
		return nil, nil
	}
	l = s.byBoard[b]
	if l == nil {
		ctx, stop := context.WithCancel(context.Background())
		l = &live{stop: stop, change: make(chan struct{})}
		s.byBoard[b] = l
		s.following.Go(func() { s.follow(ctx, b, l) })
	}
	l.pages++
	s.pages++
	return l, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pages--
		if l.pages--; l.pages == 0 {
			l.stop()
			delete(s.byBoard, b)
		}
	}
}

// next returns what is closed at the board's next change.
func (s *lives) next(l *live) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.change
}

// follow tells of changes, at most once a pace, until nobody looks.
func (s *lives) follow(ctx context.Context, b *board.Board, l *live) {
	dirty := make(chan struct{}, 1)
	var reading sync.WaitGroup
	reading.Go(func() { notice(ctx, b, dirty) })
	defer reading.Wait()
	for {
		select {
		case <-dirty:
		case <-ctx.Done():
			return
		}
		s.tell(l)
		if sleep.For(ctx, livePace) != nil {
			return
		}
	}
}

// notice marks that something has changed, for as long as ctx lasts. Events are
// read as fast as they come, so that a page never lags behind a busy board.
func notice(ctx context.Context, b *board.Board, dirty chan<- struct{}) {
	for ctx.Err() == nil {
		for event, err := range b.Watch(ctx, "") {
			if err != nil {
				break
			}
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

func (s *lives) tell(l *live) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(l.change)
	l.change = make(chan struct{})
}

// live streams a line each time the board has changed, until the page is left or
// its visitor is signed out.
func (u *UI) live(w http.ResponseWriter, r *http.Request, v *visit) {
	b, err := v.session.Board(r.Context(), r.PathValue("board"), "WatchBoard")
	if err != nil {
		u.fail(w, r, v, err)
		return
	}
	l, leave := u.lives.join(b)
	if l == nil {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many pages are kept up to date", http.StatusServiceUnavailable)
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	controller := http.NewResponseController(w)
	send := func(text string) bool {
		_ = controller.SetWriteDeadline(time.Now().Add(liveWrite)) // what takes no deadline is not a network
		_, err := fmt.Fprintf(w, "event: %s\ndata:\n\n", text)
		return err == nil && controller.Flush() == nil
	}
	if !send("begun") {
		return
	}
	beat, look := time.NewTicker(liveBeat), time.NewTicker(liveLook)
	defer beat.Stop()
	defer look.Stop()
	for {
		changed, text := u.lives.next(l), ""
		select {
		case <-changed:
			text = "changed"
		case <-beat.C:
			text = "beat"
		case <-look.C:
		case <-r.Context().Done():
			return
		case <-u.stopping:
			return
		}
		if !u.visits.stands(v) {
			send("over")
			return
		}
		if text != "" && !send(text) {
			return
		}
	}
}
