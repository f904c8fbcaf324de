package client

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/boardd/boardd/sdk/job"
)

// Several servers may serve the boards together, each board on one of them. A call at
// another one is passed on, and its answer says whose the board is and where that server is
// to be reached; from then on calls of the board go straight there. That is only a shortcut:
// as soon as it fails, or the board is somebody else's, they go to the addresses that the
// client was given. If none of those is reachable, they go to any server that was named before:
// each passes on what is not its own.

// The headers in which a server says so.
const (
	serverHeader = "Boardd-Server"       // who gave the answer, if not the server that was called
	publicHeader = "Boardd-Public"       // beside it: where that server is to be reached
	movedHeader  = "Boardd-Moved"        // of an error: whose the board is now
	thereHeader  = "Boardd-Moved-Public" // beside it: where that server is to be reached
)

// Bounds of what is kept of that.
const (
	maxStraight = 10_000 // boards
	maxPlaces   = 256    // servers
)

// How long a server is left alone at which calls could not be made: doubled each time.
const (
	leftFirst = 5 * time.Second
	leftMost  = 5 * time.Minute
)

// way is the way of one request.
type way struct {
	board    string // that the call is about; empty: none
	token    string // that it was signed with
	straight *place // where it went; nil: to one of the addresses that were given
	around   bool   // none of those was reachable, and straight is any server that is known
	strange  bool   // it went straight, and the answer is not of the server that it was to
	moved    bool   // the answer is an error, and says whose the board is now
}

// again reports whether a failed request may be made at another address at once: it took a
// shortcut, or was told of one.
func (w *way) again(kind job.Kind, err error) bool {
	_, unmade := errors.AsType[*unmade](err)
	return w.strange || w.straight != nil && (unmade || repeatable(kind, err)) || w.moved && repeatable(kind, err)
}

type wayKey struct{}

// onWay returns the context of a request about a board.
func onWay(ctx context.Context, board string) (context.Context, *way) {
	w := &way{board: board}
	return context.WithValue(ctx, wayKey{}, w), w
}

// wayOf returns the way of a request, if it is a call about a board that another server may
// have; else nil.
func wayOf(r *http.Request) *way {
	w, _ := r.Context().Value(wayKey{}).(*way)
	if w == nil || w.board == "" || !strings.Contains(r.URL.Path, "/boardd.v1.BoardService/") {
		return nil
	}
	return w
}

// place is one server that said where it is to be reached. Its straights' mu guards it.
type place struct {
	addr   *url.URL
	ear    *ear
	boards int       // that are there
	works  bool      // it has answered
	asking bool      // whether it does
	until  time.Time // it is left alone
	failed int       // how often calls failed there since one was made
}

// straights knows which boards are to be reached straight at which server.
type straights struct {
	trusts func(*url.URL) bool
	probe  func(context.Context, *url.URL) error

	mu     sync.Mutex
	boards map[string]*place
	places map[string]*place // by their addresses
}

// of returns where calls of a board go straight to, or nil.
func (s *straights) of(board string) *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.boards[board]
	switch {
	case p == nil:
		return nil
	case p.works:
		return p
	}
	s.ask(p)
	return nil
}

// any returns a server that answered when it was last asked, or nil.
func (s *straights) any() *place {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.places {
		if p.works {
			return p
		}
	}
	return nil
}

// learn takes note of what an answer to a request says of whose the board is.
func (s *straights) learn(w *way, status int, header http.Header) {
	switch {
	case s.moved(w, header):
	case header.Get(serverHeader) != "":
		s.put(w.board, header.Get(publicHeader))
	case w.around && status == http.StatusOK:
		s.put(w.board, w.straight.addr.String())
	case w.straight == nil && status == http.StatusOK, w.straight != nil && status == http.StatusServiceUnavailable:
		s.forget(w.board) // it is the board of the server that was called, or of nobody known
	}
}

// moved reports whether a header says that the board of a request is another server's now,
// and takes note of that.
func (s *straights) moved(w *way, header http.Header) bool {
	if w.moved = header.Get(movedHeader) != ""; w.moved {
		s.put(w.board, header.Get(thereHeader))
	}
	return w.moved
}

// put has calls of a board go to an address, once that has answered; "" or one that is not
// trusted: to those that the client was given.
func (s *straights) put(board, addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.boards[board]; p != nil && p.addr.String() == addr {
		return
	}
	s.drop(board)
	p := s.places[addr]
	if p == nil {
		u, err := url.Parse(addr)
		if err != nil || !s.trusts(u) || !s.room() {
			return
		}
		p = &place{addr: u}
		p.ear = &ear{probe: func(ctx context.Context) error { return s.probe(ctx, u) }, silent: func() { s.fail(p) }}
		s.places[addr] = p
	}
	for other := range s.boards {
		if len(s.boards) < maxStraight {
			break
		}
		s.drop(other)
	}
	s.boards[board] = p
	p.boards++
	s.ask(p)
}

// room reports whether another server may be known. s.mu is held.
func (s *straights) room() bool {
	for addr, p := range s.places {
		if len(s.places) < maxPlaces {
			return true
		}
		if p.boards == 0 {
			delete(s.places, addr)
		}
	}
	return len(s.places) < maxPlaces
}

// forget has the calls of a board go to the addresses that the client was given.
func (s *straights) forget(board string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(board)
}

// drop is forget. s.mu is held.
func (s *straights) drop(board string) {
	if p := s.boards[board]; p != nil {
		delete(s.boards, board)
		p.boards--
	}
}

// ask looks whether a server can be reached, unless that is known, so that no call has to
// find out that it cannot. s.mu is held.
func (s *straights) ask(p *place) {
	if p.works || p.asking || time.Now().Before(p.until) {
		return
	}
	p.asking = true
	time.AfterFunc(0, func() {
		ctx, cancel := context.WithTimeout(context.Background(), listenFor)
		defer cancel()
		err := s.probe(ctx, p.addr)
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.asking = false; err != nil {
			s.leave(p)
			return
		}
		p.works = true
	})
}

// done notes that a call was answered at a server.
func (s *straights) done(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.failed = 0
}

// fail notes that a call could not be made at a server.
func (s *straights) fail(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.works {
		s.leave(p)
	}
}

// leave leaves a server alone for a while. s.mu is held.
func (s *straights) leave(p *place) {
	p.works, p.until = false, time.Now().Add(doubled(p.failed, leftFirst, leftMost))
	p.failed++
}

// trusts reports whether the token may be sent to an address that one of the servers has
// named. It came with the answer to a call that brought the token, so whoever named it has
// the token already; what remains is that nobody else sees it on the way. So the connection
// is as safe as all those of the client's own addresses, and nothing on the client's own
// machine is called because a server far away speaks of its own.
func (s *servers) trusts(u *url.URL) bool {
	if u.Scheme != "http" && u.Scheme != "https" || *u != (url.URL{Scheme: u.Scheme, Host: u.Host}) || !hostname(u.Hostname()) {
		return false // there is more to it than a server says, or less
	}
	local := false
	for _, given := range s.addrs {
		if given.Scheme == "https" && u.Scheme != "https" {
			return false
		}
		local = local || onLoopback(given)
	}
	return local || !onLoopback(u)
}

// hostname reports whether a host is a name or an IP address, and not what only some resolvers
// take for an address, such as 127.1.
func hostname(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	last := name[strings.LastIndexByte(name, '.')+1:]
	return strings.Trim(last, "0123456789") != "" && !strings.HasPrefix(last, "0x")
}

// onLoopback reports whether an address is that of the machine itself.
func onLoopback(u *url.URL) bool {
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(name)
	return err == nil && (address.Unmap().IsLoopback() || address.IsUnspecified())
}
