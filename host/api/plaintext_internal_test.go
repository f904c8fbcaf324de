package api

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPlainHTTPOnAPortOfTLS: whoever speaks plain HTTP to a port of TLS always reads what is
// wrong, however much of the request is still under way when the server has answered.
func TestPlainHTTPOnAPortOfTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Listener = secured{server.Listener}
	server.StartTLS()
	defer server.Close()
	request := []byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
	for range 200 {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range [][]byte{request, bytes.Repeat([]byte("x"), 100_000)} {
			if _, err := conn.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(answer), "HTTP request to an HTTPS server") {
			t.Fatalf("answered %q, %v", answer, err)
		}
		_ = conn.Close()
	}
	answer, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
}
