package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// hosts carries each request to the fake that has the request's host. One that is
// not there cannot be reached.
type hosts struct {
	mu    sync.Mutex
	up    map[string]connect.HTTPClient
	asked []string // hosts and paths
}

func (h *hosts) Do(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	h.asked = append(h.asked, r.URL.Host+strings.TrimSuffix(r.URL.Path, "/boardd.v1.BoardService/CountJobs"))
	to := h.up[r.URL.Host]
	h.mu.Unlock()
	if r.Host != r.URL.Host {
		return nil, errors.New("the request names another host than it is sent to: " + r.Host)
	}
	if to == nil {
		return nil, errors.New("connection refused")
	}
	return to.Do(r)
}

func (h *hosts) stop(host string, as connect.HTTPClient) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.up[host] = as
}

// busy answers that it has no time.
type busy struct{}

func (busy) Do(*http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = w.WriteString(`{"code":"unavailable","message":"busy"}`)
	return w.Result(), nil
}

// TestSeveralServers goes from one server to the next, at once, and stays there.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		one, two := strip{transportOf(f)}, strip{transportOf(f)}
		h := &hosts{up: map[string]connect.HTTPClient{"one": one, "two": two}}
		c, err := client.New(client.Config{Addr: "http://one/a, http://two/b/", HTTPClient: h})
		if err != nil {
			t.Fatal(err)
		}
		board, begun := c.Board("default"), time.Now()
		count := func(what string, want ...string) {
			t.Helper()
			h.asked = nil
			if _, err := board.Count(t.Context()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if !slices.Equal(h.asked, want) {
				t.Errorf("%s: it asked %v, want %v", what, h.asked, want)
			}
		}
		count("both are there", "one/a")
		h.stop("one", nil)
		count("the first one is gone", "one/a", "two/b")
		count("and then", "two/b")
		h.stop("one", one)
		count("it is back", "two/b")
		h.stop("two", busy{})
		count("the second one has no time", "two/b", "one/a")
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("waited %v, though another server was there", waited)
		}
		h.stop("one", busy{})
		go func() {
			time.Sleep(5 * time.Second)
			h.stop("one", one)
		}()
		count("nobody has time for a while", "one/a", "two/b", "one/a")
		if waited := time.Since(begun); waited != 7*time.Second {
			t.Errorf("waited %v, want what the server asked for", waited)
		}
	})
}

// strip takes off the path that comes before that of the call.
type strip struct{ next connect.HTTPClient }

func (s strip) Do(r *http.Request) (*http.Response, error) {
	u := *r.URL
	u.Path = u.Path[strings.Index(u.Path, "/boardd.v1."):]
	r = r.WithContext(r.Context())
	r.URL = &u
	return s.next.Do(r)
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list string
		ok   bool
	}{
		{"", true},
		{"http://a", true},
		{"http://a:1/,https://b:2/x", true},
		{" http://a , http://b ", true},
		{strings.TrimSuffix(strings.Repeat("http://a,", client.MaxAddrs), ","), true},
		{strings.TrimSuffix(strings.Repeat("http://a,", client.MaxAddrs+1), ","), false},
		{"http://a,", false},
		{",", false},
		{"http://a,b:1", false},
		{"a", false},
		{"ftp://a", false},
		{"http://", false},
	} {
		_, err := client.New(client.Config{Addr: c.list})
		if (err == nil) != c.ok || err != nil && !errors.Is(err, job.Invalid) {
			t.Errorf("%.50q: %v", c.list, err)
		}
	}
}
