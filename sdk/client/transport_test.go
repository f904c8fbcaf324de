package client_test

import (
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
