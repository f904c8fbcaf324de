package client

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// writeCounter counts what is written to a connection.
type writeCounter struct {
	net.Conn

	writes *atomic.Int32
}

func (c writeCounter) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// TestWholeRequests checks that a request of a usual size is one write, and that
// what arrives is what was sent, whatever its size.
func TestWholeRequests(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(b)
	}))
	t.Cleanup(server.Close)
	var writes atomic.Int32
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return writeCounter{conn, &writes}, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	for _, test := range []struct {
		name string
		size int
		one  bool
	}{
		{"empty", 0, false}, {"small", 500, true}, {"at the limit", maxWhole, false}, {"larger", maxWhole + 1, false},
	} {
		// A reader of a type that net/http does not know, as a generated client has.
		text := strings.Repeat("x", test.size)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, io.MultiReader(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(test.size)
		writes.Store(0)
		res, err := wholeRequests{transport}.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(answer) != text {
			t.Errorf("%s: %d bytes of %d came back, %v", test.name, len(answer), test.size, err)
		}
		if n := writes.Load(); test.one && n != 1 {
			t.Errorf("%s: %d writes, want 1", test.name, n)
		}
	}
}
