package api

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// exhausted is a listener of a process that has no file descriptors left.
type exhausted struct{ net.Listener }

func (exhausted) Accept() (net.Conn, error) { return nil, syscall.EMFILE }
func (exhausted) Addr() net.Addr            { return &net.TCPAddr{Port: 7422} }

// TestConnectionsThatCannotBeTaken: whoever operates a server that takes no connections
// any more reads so in its log, and not once for each try.
func TestConnectionsThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		l := (&Server{logger: slog.New(slog.NewTextHandler(&log, nil))}).audible(exhausted{})
		for range 21 { // as net/http does: 20 s
			if _, err := l.Accept(); err == nil {
				t.Fatal("a connection came")
			}
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], "level=ERROR") || !strings.Contains(lines[0], "too many open files") {
			t.Errorf("the log has %d lines, want one each 10 s:\n%s", len(lines), log.String())
		}
	})
}
