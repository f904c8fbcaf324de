package store

import (
	"net"
	"syscall"
	"testing"
)

// TestConnectionsAreProbed: a server that is gone without a word is noticed, also while
// something that was sent to it has no acknowledgment.
func TestConnectionsAreProbed(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	s, err := readSettings([]byte(`{"url":"postgres://u@127.0.0.1/d"}`))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := s.pool.ConnConfig.DialFunc(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		name                 string
		level, option, value int
	}{
		{"SO_KEEPALIVE", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{"TCP_KEEPIDLE", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 5},
		{"TCP_KEEPINTVL", syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 2},
		{"TCP_KEEPCNT", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
		{"TCP_USER_TIMEOUT", syscall.IPPROTO_TCP, tcpUserTimeout, 11_000},
	} {
		var got int
		var failed error
		if err := raw.Control(func(fd uintptr) { got, failed = syscall.GetsockoptInt(int(fd), want.level, want.option) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if got != want.value {
			t.Errorf("%s is %d, want %d", want.name, got, want.value)
		}
	}
}
