package api

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
)

// gated serves next behind a gate whose patience with bodies is short.
func gated(t *testing.T, within time.Duration, next http.HandlerFunc) *httptest.Server {
	t.Helper()
	h := emptyHost(t)
	g := newGate(h, newMetrics(h), Config{Logger: slog.New(slog.DiscardHandler)}, nil)
	g.readWithin = within
	s := httptest.NewServer(g.admit(next))
	t.Cleanup(s.Close)
	return s
}

// TestPatienceEndsWithTheBody has a call that goes on for longer than its body
// may take. The deadline must be gone by then: on HTTP/1.1 it would end the call.
func TestPatienceEndsWithTheBody(t *testing.T) {
	t.Parallel()
	const within = 2 * time.Second
	s := gated(t, within, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the body: %v", err)
		}
		select {
		case <-r.Context().Done():
			t.Errorf("the call was ended: %v", r.Context().Err())
		case <-time.After(within + within/4):
		}
		_, _ = w.Write(body)
	})
	for _, body := range []string{"", "x", strings.Repeat("x", 1<<20)} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err != nil || string(got) != body {
			t.Errorf("a body of %d bytes came back as %d, %v", len(body), len(got), err)
		}
	}
}

// TestSlowBodies sends half of a body and then nothing. The server must end the
// connection: what is awaited is that the test comes to its end.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 1)
	s := gated(t, 50*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	})
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("half a body was taken for a whole one")
	}
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Logf("the connection ended with %v", err)
	}
}

// TestBodiesThatCannotBeRead has a body that stops half way, and chunks that are none.
// What Connect gets to answer with says so.
func TestBodiesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := emptyHost(t)
	g := newGate(h, newMetrics(h), Config{Logger: slog.New(slog.DiscardHandler)}, nil)
	g.readWithin = 50 * time.Millisecond
	failed := make(chan error, 1)
	s := httptest.NewServer(g.admit(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		g.counted(r, &portion{budget: &g.bytes})
		_, err := io.ReadAll(r.Body)
		failed <- err
	})))
	t.Cleanup(s.Close)
	for body, want := range map[string]struct {
		code    connect.Code
		message string
	}{
		"Content-Length: 10\r\n\r\nhalf": {connect.CodeDeadlineExceeded, "the request did not come whole within 50ms"},
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n": {
			connect.CodeInvalidArgument, "the body of the request is not as its header says: invalid byte in chunk length",
		},
		"Content-Type: application/grpc\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n\x00\x00\x00\x00\x09\r\n1\r\nx\r\nzz\r\n": {
			connect.CodeInvalidArgument, "the body of the request is not as its header says: invalid byte in chunk length",
		},
		"Content-Type: application/grpc\r\nContent-Length: 3\r\n\r\nabc": {connect.CodeInvalidArgument, "the body of the request ends within a message"},
		"Content-Type: application/connect+json\r\nContent-Length: 7\r\n\r\n\x00\x00\x00\x00\x09{}": {
			connect.CodeInvalidArgument, "the body of the request ends within a message",
		},
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\n"+body); err != nil {
			t.Fatal(err)
		}
		err = <-failed
		got, ok := errors.AsType[*connect.Error](err)
		if !ok || got.Code() != want.code || got.Message() != want.message || len(got.Details()) != 1 {
			t.Errorf("%q: %v, want %s: %s, with a detail", body, err, want.code, want.message)
		}
		_ = conn.Close()
	}
}

// TestBodiesAreBounded sends more than is read.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	read := make(chan int64, 1)
	s := gated(t, time.Minute, func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		read <- n
	})
	for contentType, want := range map[string]int64{"application/json": MaxRequest + 1, "application/proto": MaxRequest + 1, "application/grpc": hardLimit} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, io.LimitReader(endless{}, hardLimit+1<<20))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", contentType)
		if answer, err := s.Client().Do(r); err == nil { // or the server closes the connection under what is still sent
			_ = answer.Body.Close()
		}
		if n := <-read; n != want {
			t.Errorf("%s: %d bytes were read, want %d", contentType, n, want)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
