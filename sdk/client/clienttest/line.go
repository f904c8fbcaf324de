package clienttest

import (
	"context"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"slices"
	"sync"
	"time"
)

// line is what stands between a worker and its server, and can be bad.
type line struct {
	addr   string
	proxy  *httputil.ReverseProxy
	server *http.Server

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	losing int           // answers that are still to be lost
	late   time.Duration // for which a call waits
	hears  chan struct{} // closed while calls come through
}

// losable are the calls of a worker that change something and can be repeated.
var losable = []string{"Work", "ClaimJobs", "ExtendClaims", "ConsumeJobs", "AbandonJobs", "TrashJobs"}

func newLine(server string) (*line, error) {
	return newLineFor(server, func(l http.Handler) http.Handler { return l })
}

// newLineFor opens a line of which something more is to be seen, or to be bad.
func newLineFor(server string, wrap func(http.Handler) http.Handler) (*line, error) {
	to, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &line{
		addr: listener.Addr().String(), conns: make(map[net.Conn]struct{}), hears: make(chan struct{}),
		proxy: &httputil.ReverseProxy{
			FlushInterval: -1, // streams
			Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
			// As if there were no proxy: a server that is gone breaks the connection.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
	}
	close(l.hears)
	l.server = &http.Server{Handler: wrap(l), ReadHeaderTimeout: time.Minute, ConnState: l.changed}
	go func() { _ = l.server.Serve(listener) }() // it ends with close
	return l, nil
}

func (l *line) close() { _ = l.server.Close() }

func (l *line) changed(c net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state == http.StateNew {
		l.conns[c] = struct{}{}
	}
	if state == http.StateClosed || state == http.StateHijacked {
		delete(l.conns, c)
	}
}

// ServeHTTP passes a call on, or does what is bad now.
func (l *line) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	hears, late := l.hears, l.late
	lose := l.losing > 0 && slices.Contains(losable, path.Base(r.URL.Path))
	if lose {
		l.losing--
	}
	l.mu.Unlock()
	for _, pause := range []<-chan struct{}{hears, after(r.Context(), late)} {
		select {
		case <-pause:
		case <-r.Context().Done():
			return
		}
	}
	if lose {
		l.proxy.ServeHTTP(nowhere{http.Header{}}, r)
		panic(http.ErrAbortHandler)
	}
	l.proxy.ServeHTTP(w, r)
	l.mu.Lock()
	hears = l.hears
	l.mu.Unlock()
	select {
	case <-hears:
	case <-r.Context().Done():
	}
}

func after(ctx context.Context, d time.Duration) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if d > 0 {
			_ = wait(ctx, d) // the caller looks at ctx itself
		}
	}()
	return done
}

// nowhere is where an answer goes that nobody gets.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n nowhere) WriteHeader(int)             {}

// lose has the next n answers not come back, and returns how many of the last ones still
// were to be lost.
func (l *line) lose(n int) (left int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left, l.losing = l.losing, n
	return left
}

// cut breaks every connection that there is.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

func (l *line) delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = d
}

// silence has calls hang, and the connections stay.
func (l *line) silence(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if on {
		l.hears = make(chan struct{})
		return
	}
	close(l.hears)
}
