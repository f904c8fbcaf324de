package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
)

// patient is a server whose patience with headers is short.
func patient(t *testing.T, within time.Duration) string {
	t.Helper()
	s := &Server{logger: slog.New(slog.DiscardHandler)}
	server := s.httpServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }))
	if server.ReadHeaderTimeout != headerWithin || server.IdleTimeout != idleWithin || server.MaxHeaderBytes != maxHeaderBytes {
		t.Errorf("a server waits %s for headers of %d bytes and %s between requests", server.ReadHeaderTimeout, server.MaxHeaderBytes, server.IdleTimeout)
	}
	server.ReadHeaderTimeout, server.IdleTimeout = within, within
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !isGone(err) {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

// TestSlowHeaders has clients that send a header bit by bit, or none, or nothing
// more after their first request. The server ends each connection; meanwhile it
// answers others. What is awaited is that the test comes to its end.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	addr := patient(t, time.Second)
	dial := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	var slow []net.Conn
	for i := range 200 {
		conn := dial()
		slow = append(slow, conn)
		switch i % 4 {
		case 0: // says nothing
		case 1:
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		case 2:
			_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\n") // half of how HTTP/2 begins
		case 3:
			_, _ = io.WriteString(conn, "GET /first HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
	}
	go func() { // one that goes on and on
		for range 1000 {
			if _, err := io.WriteString(slow[1], "x"); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	quick := dial()
	if _, err := io.WriteString(quick, "GET /quick HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(quick); err != nil || !strings.HasSuffix(string(answer), "/quick") {
		t.Errorf("somebody who is quick: %q, %v", answer, err)
	}
	for i, conn := range slow {
		if _, err := io.Copy(io.Discard, conn); err != nil { // until the server ends it
			t.Logf("connection %d ended with %v", i, err)
		}
	}
}

// TestHugeHeaders: headers over the limit are refused before anybody looks at them.
func TestHugeHeaders(t *testing.T) {
	t.Parallel()
	addr := patient(t, time.Minute)
	for what, c := range map[string]struct {
		header string
		want   string
	}{
		"large":          {"X-Large: " + strings.Repeat("x", maxHeaderBytes/2), "200"},
		"too large":      {"X-Large: " + strings.Repeat("x", maxHeaderBytes+8<<10), "431"},
		"many":           {strings.TrimSuffix(strings.Repeat("X-A: b\r\n", maxHeaderBytes/4), "\r\n"), "431"},
		"a name of none": {strings.Repeat(":", 10), "400"},
		"a line end":     {"X-A: b\rX-B: c", "400"},
		"two lengths":    {"Content-Length: 1\r\nContent-Length: 2", "400"},
		"two hosts":      {"Host: elsewhere", "400"},
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", c.header) }()
		line, err := bufio.NewReader(conn).ReadString('\n')
		if fields := strings.Fields(line); err != nil || len(fields) < 2 || fields[1] != c.want {
			t.Errorf("%s: %q, %v, want %s", what, line, err, c.want)
		}
		_ = conn.Close()
	}
}

// TestStreamsAreBounded at the edge of what the server keeps open.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	h := emptyHost(t)
	o := &observer{logger: slog.New(slog.DiscardHandler), metrics: newMetrics(h), host: h}
	open := func() error {
		return o.WrapStreamingHandler(func(context.Context, connect.StreamingHandlerConn) error { return nil })(t.Context(), &noConn{})
	}
	o.streams.Store(maxStreamsOpen - 1)
	if err := open(); err != nil {
		t.Errorf("the last one: %v", err)
	}
	o.streams.Store(maxStreamsOpen)
	if err := open(); connect.CodeOf(err) != connect.CodeResourceExhausted || !strings.Contains(err.Error(), "poll with ListEvents") {
		t.Errorf("one more: %v", err)
	}
	if n := o.streams.Load(); n != maxStreamsOpen {
		t.Errorf("%d are counted after both have ended", n)
	}
}

// noConn is a stream of nobody.
type noConn struct{ connect.StreamingHandlerConn }

// Spec says which call it is.
func (*noConn) Spec() connect.Spec {
	return connect.Spec{Procedure: "/boardd.v1.BoardService/WatchBoard", StreamType: connect.StreamTypeServer}
}
