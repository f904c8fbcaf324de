package store

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/boardd/boardd/sdk/job"
)

// What is tried with TLS and without is told of once, and that a server has no TLS is no
// reason where something else is.
func TestConnectionErrors(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1024))
			_, _ = io.WriteString(c, "N") // no TLS here, and as the answer to anything else no message
			_ = c.Close()
		}
	}()
	for at, want := range map[string]string{"127.0.0.1:1": "connection refused", listener.Addr().String(): "(127.0.0.1): "} {
		_, err := pgconn.Connect(t.Context(), "postgres://x@"+at+"/y?sslmode=prefer")
		if err == nil {
			t.Fatalf("%s: somebody answers", at)
		}
		err = failed(t.Context(), err)
		if text := err.Error(); strings.Count(text, want) != 1 || strings.Contains(text, "TLS") || strings.Contains(text, "\n") || job.KindOf(err) != job.Unavailable {
			t.Errorf("%s: got %q, want %q once, on one line and nothing of TLS", at, text, want)
		}
	}
}
