package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"
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
	ears  []*ear        // of each of addrs; none: there is only one
	usual time.Duration // within which a call is answered that asks for no wait
}

// newServers reads addresses that are separated by commas.
func newServers(list string, next connect.HTTPClient) (*servers, error) {
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
			s.ears = append(s.ears, &ear{probe: func(ctx context.Context) error { return s.probe(ctx, i) }, silent: func() { s.leave(int64(i)) }})
		}
	}
	return s, nil
}

// parseAddr checks an address and returns it without a slash at its end.
func parseAddr(addr string) (*url.URL, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, job.Errorf(job.Invalid, "address %q: want http://HOST:PORT or https://HOST:PORT, and commas between several", addr)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// base is the address for which requests are made. Do sends them elsewhere.
func (s *servers) base() string { return s.addrs[0].String() }

// Do sends a request to the server that is called now. One that is not reachable,
// does not answer in time or says that it cannot serve now is left.
func (s *servers) Do(r *http.Request) (*http.Response, error) {
	i := s.at.Load()
	if addr := s.addrs[i]; i > 0 {
		r = r.WithContext(r.Context()) // a copy: the caller's request must stay as it is
		u := *r.URL
		u.Scheme, u.Host, u.Path = addr.Scheme, addr.Host, addr.Path+strings.TrimPrefix(u.Path, s.addrs[0].Path)
		r.URL, r.Host = &u, addr.Host
	}
	answer, err := s.heard(r, i)
	if err != nil && !errors.Is(r.Context().Err(), context.Canceled) || err == nil && answer.StatusCode == http.StatusServiceUnavailable {
		s.leave(i)
	}
	return answer, err
}

// heard makes a request and has it fail when its server turns out to be silent.
func (s *servers) heard(r *http.Request, i int64) (*http.Response, error) {
	if len(s.ears) == 0 {
		return s.next.Do(r)
	}
	deadline, limited := r.Context().Deadline()
	patience := listenAfter
	if limited && time.Until(deadline) > s.usual { // it asks the server to wait
		patience = listenAgain
	}
	ctx, answered := s.ears[i].listen(r.Context(), patience)
	defer answered()
	answer, err := s.next.Do(r.WithContext(ctx))
	if silence, ok := errors.AsType[*silentError](context.Cause(ctx)); err != nil && ok {
		return nil, silence
	}
	return answer, err
}

// probe asks a server whether it is alive.
func (s *servers) probe(ctx context.Context, i int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.addrs[i].String()+"/healthz", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := s.next.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close() // whatever it says, it says something
}

// leave goes on to the next server, unless somebody else did.
func (s *servers) leave(i int64) { s.at.CompareAndSwap(i, (i+1)%int64(len(s.addrs))) }
