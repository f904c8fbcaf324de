package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/job"
)

// MaxAddrs is how many servers a Client may be told of.
const MaxAddrs = 64

// servers carries calls to one of several servers that serve the same boards: to
// the one that answered last, and to the next one as soon as that does not. What a
// call asks for is named by the call, so that another server may be asked again.
type servers struct {
	next  connect.HTTPClient
	addrs []*url.URL
	at    atomic.Int64  // which of addrs is called
	lost  atomic.Int64  // how many calls at them failed in a row
	ears  []*ear        // of each of addrs; none: there is only one
	there *straights    // boards that are called elsewhere; nil: none are
	usual time.Duration // within which a call is answered that asks for no wait
}

// newServers reads addresses that are separated by commas.
func newServers(list string, straight bool, next connect.HTTPClient) (*servers, error) {
	if list == "" {
		list = DefaultAddr
	}
	s := &servers{next: next}
	for addr := range strings.SplitSeq(list, ",") {
		u, err := parseAddr(strings.TrimSpace(addr))
		if err != nil {
			return nil, err
		}
		s.addrs = append(s.addrs, u)
	}
	if len(s.addrs) > MaxAddrs {
		return nil, job.Errorf(job.Invalid, "%d addresses are too many: want at most %d", len(s.addrs), MaxAddrs)
	}
	for i := range s.addrs {
		if len(s.addrs) > 1 {
			s.ears = append(s.ears, &ear{probe: func(ctx context.Context) error { return s.probe(ctx, s.addrs[i]) }, silent: func() { s.leave(int64(i)) }})
		}
	}
	if straight {
		s.there = &straights{trusts: s.trusts, probe: s.alive, boards: map[string]*place{}, places: map[string]*place{}}
	}
	return s, nil
}

// parseAddr checks an address and returns it without a slash at its end.
func parseAddr(addr string) (*url.URL, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		text := "want http://HOST:PORT or https://HOST:PORT, and commas between several"
		host, port, _ := net.SplitHostPort(addr)
		if _, wrong := strconv.ParseUint(port, 10, 16); wrong == nil && host != "" {
			text = "want http://" + addr + ", or https://" + addr + " where the server has a certificate"
		}
		return nil, job.Errorf(job.Invalid, "address %q: %s", addr, text)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// base is the address for which requests are made. Do sends them elsewhere.
func (s *servers) base() string { return s.addrs[0].String() }

// Do sends a request to the server that has its board, if that is known, or to the one that
// is called now. One that is not reachable, does not answer in time or says that it cannot
// serve now is left.
func (s *servers) Do(r *http.Request) (*http.Response, error) {
	way := wayOf(r)
	if way != nil && s.there != nil {
		if way.straight = s.there.of(way.board); way.straight != nil {
			return s.straight(r, way)
		}
		if s.lost.Load() >= int64(len(s.addrs)) {
			s.lost.Store(0) // the next one tries them again
			if way.straight = s.there.any(); way.straight != nil {
				way.around = true
				return s.straight(r, way)
			}
		}
	}
	i := s.at.Load()
	answer, err := s.heard(s.to(r, s.addrs[i]), s.ear(i))
	if err == nil && way != nil && s.there != nil && direct(answer) {
		s.there.learn(way, answer.StatusCode, answer.Header)
	}
	if failed(r, err) {
		s.lost.Add(1)
	} else if err == nil {
		s.lost.Store(0)
	}
	if failed(r, err) || err == nil && answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get(publicHeader)+answer.Header.Get(thereHeader) == "" {
		s.leave(i) // one that says who can serve is not left
	}
	return answer, err
}

// straight sends a request to the server that has its board.
func (s *servers) straight(r *http.Request, way *way) (*http.Response, error) {
	p := way.straight
	answer, err := s.heard(s.to(r, p.addr), p.ear)
	switch {
	case err == nil && (!direct(answer) || strange(answer)):
		way.strange = true
		s.there.fail(p)
	case err == nil:
		s.there.learn(way, answer.StatusCode, answer.Header)
		s.there.done(p)
	case failed(r, err):
		s.there.fail(p)
	}
	return answer, err
}

// strange reports whether an answer is rather that of a server of other boards, or of
// something between, than of the one that was to be reached.
func strange(answer *http.Response) bool {
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusMisdirectedRequest, http.StatusBadGateway, http.StatusGatewayTimeout:
		return true
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		return true
	}
	switch form, _, _ := strings.Cut(answer.Header.Get("Content-Type"), ";"); form {
	case "application/proto", "application/json", "application/connect+proto", "application/connect+json":
		return false
	}
	return true // a page
}

// failed reports whether a request's server is to be left: not where its caller has gone.
func failed(r *http.Request, err error) bool {
	return err != nil && !errors.Is(r.Context().Err(), context.Canceled)
}

// direct reports whether an answer is of the server that was called, and not of one that it
// has sent the request on to.
func direct(answer *http.Response) bool {
	return answer.Request == nil || answer.Request.Response == nil
}

// to returns a request as it is sent to an address.
func (s *servers) to(r *http.Request, addr *url.URL) *http.Request {
	if addr == s.addrs[0] {
		return r
	}
	r = r.WithContext(r.Context()) // a copy: the caller's request must stay as it is
	u := *r.URL
	u.Scheme, u.Host, u.Path = addr.Scheme, addr.Host, addr.Path+strings.TrimPrefix(u.Path, s.addrs[0].Path)
	r.URL, r.Host = &u, addr.Host
	return r
}

// ear returns what listens to one of the addresses; nil: nothing does.
func (s *servers) ear(i int64) *ear {
	if len(s.ears) == 0 {
		return nil
	}
	return s.ears[i]
}

// heard makes a request and has it fail when its server turns out to be silent.
func (s *servers) heard(r *http.Request, e *ear) (*http.Response, error) {
	if e == nil {
		return s.next.Do(r)
	}
	deadline, limited := r.Context().Deadline()
	patience := listenAfter
	if limited && time.Until(deadline) > s.usual { // it asks the server to wait
		patience = listenAgain
	}
	ctx, answered := e.listen(r.Context(), patience)
	defer answered()
	answer, err := s.next.Do(r.WithContext(ctx))
	if silence, ok := errors.AsType[*silentError](context.Cause(ctx)); err != nil && ok {
		return nil, silence
	}
	return answer, err
}

// probe asks a server whether it is alive. Whatever it says, it says something.
func (s *servers) probe(ctx context.Context, addr *url.URL) error {
	answer, err := s.health(ctx, addr)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// alive asks a server that is not known yet whether it is one.
func (s *servers) alive(ctx context.Context, addr *url.URL) error {
	answer, err := s.health(ctx, addr)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = job.Errorf(job.Unavailable, "the server answers with status %d", answer.StatusCode)
	}
	return errors.Join(err, answer.Body.Close())
}

func (s *servers) health(ctx context.Context, addr *url.URL) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, addr.String()+"/healthz", http.NoBody)
	if err != nil {
		return nil, err
	}
	return s.next.Do(r)
}

// silent leaves the server of a stream that gave no sign of life.
func (s *servers) silent(w *way) {
	if w.straight != nil {
		s.there.fail(w.straight)
		return
	}
	s.leave(s.at.Load())
}

// ended takes note of what the end of a stream says of whose its board is, and reports
// whether it says that.
func (s *servers) ended(w *way, err error) (moved bool) {
	var answer *connect.Error
	return s.there != nil && errors.As(err, &answer) && s.there.moved(w, answer.Meta())
}

// leave goes on to the next server, unless somebody else did.
func (s *servers) leave(i int64) { s.at.CompareAndSwap(i, (i+1)%int64(len(s.addrs))) }
