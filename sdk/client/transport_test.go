package client_test

import (
	"bufio"
	"encoding/pem"
	"errors"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/boardd/boardd/sdk/boardd/v1/boarddv1connect"
	"github.com/boardd/boardd/sdk/client"
	"github.com/boardd/boardd/sdk/job"
)

// A server is believed that the given file vouches for, and no other; a wrong
// certificate does not get better with waiting.
func TestTrust(t *testing.T) {
	t.Parallel()
	fake := newFake()
	mux := http.NewServeMux()
	mux.Handle(boarddv1connect.NewBoardServiceHandler(fake))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}

	trusting, err := client.New(client.Config{Addr: server.URL, CAFile: file})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trusting.Close)
	if _, err := trusting.Board("default").Count(t.Context()); err != nil {
		t.Error(err)
	}
	strict, err := client.New(client.Config{Addr: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(strict.Close)
	if _, err := strict.Board("default").Count(t.Context()); !errors.Is(err, job.Unavailable) {
		t.Errorf("%v, want UNAVAILABLE", err)
	}
}

// A change that never got to a server is not one of unknown outcome, and what is wrong
// with the address or the certificate is said.
func TestWrongScheme(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.Handle(boarddv1connect.NewBoardServiceHandler(newFake()))
	secure, plain := httptest.NewTLSServer(mux), httptest.NewServer(mux)
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	for addr, want := range map[string]struct {
		message string
		is      error
	}{
		secure.URL: {"the certificate of " + secure.Listener.Addr().String() + " is not trusted: certificate signed by unknown authority", client.ErrUntrusted},
		strings.Replace(secure.URL, "https:", "http:", 1): {"speaks TLS: want https:// in place of http://", http.ErrSchemeMismatch},
		strings.Replace(plain.URL, "http:", "https:", 1):  {"speaks no TLS: want http:// in place of https://", http.ErrSchemeMismatch},
	} {
		c, err := client.New(client.Config{Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		_, err = c.Board("default").Post(t.Context(), &client.NewJob{Name: "a"})
		if job.KindOf(err) != job.Unavailable || !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.message) {
			t.Errorf("%s: %v, want %s", addr, err, want.message)
		}
		for name, err := range map[string]error{
			"watch": firstError(c.Board("default").Watch(t.Context(), "")),
			"log":   firstError(c.Board("default").Log(t.Context(), client.NewUUID(), 0, true)),
		} {
			if job.KindOf(err) != job.Unavailable || !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.message) {
				t.Errorf("%s of %s: %v, want %s", name, addr, err, want.message)
			}
		}
	}
}

// firstError is what a stream ends with.
func firstError[T any](stream iter.Seq2[T, error]) error {
	for _, err := range stream {
		if err != nil {
			return err
		}
	}
	return nil
}

// A refusal of a request that is no other server's is read as it is.
func TestBadRequestsStay(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "Client sent", "no such thing as this request is known to this old server here"} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, "HTTP/1.0 400 Bad Request\r\n\r\n"+body)
				_ = conn.Close()
			}
		}()
		c, err := client.New(client.Config{Addr: "http://" + listener.Addr().String(), RetryFor: -1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if _, err := c.Board("default").Count(t.Context()); err == nil || errors.Is(err, http.ErrSchemeMismatch) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

// Connections are kept and used again.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	fake := newFake()
	mux := http.NewServeMux()
	mux.Handle(boarddv1connect.NewBoardServiceHandler(fake))
	server := httptest.NewUnstartedServer(mux)
	var connections atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c, err := client.New(client.Config{Addr: server.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for range 50 {
		if _, err := c.Board("default").Count(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections for calls one after the other, want 1", n)
	}
}
